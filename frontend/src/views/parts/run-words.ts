import type { KeyData, RunPart, RunVerdict, TablePlace } from "../../api/run-verdict";
import type { Messages } from "../../i18n";

/** Sentences about key data and settings, from the document alone. */

/** The finding that is said where the tables are: training read the prompts alone. */
export const PROMPTS_ONLY = "prompts_only";

const MEMBERS = ["step", "rank", "micro_step", "id"] as const;

/** `step 2 · rank 0 · micro step 1`; an entry of its own is named only where it is not the only one. */
export function placeText(place: Partial<TablePlace>, t: Messages, members: readonly (typeof MEMBERS)[number][] = MEMBERS): string {
  return members
    .map((member) => {
      const value = place[member];
      return value === null || value === undefined || (member === "id" && value === "0") ? null : t.loop.place[member](`${value}`);
    })
    .filter((part) => part !== null)
    .join(" · ");
}

/** Which of the keys that a consequence is made of is named: the one right before it, else the one with a cause of its own. */
export function causeOf(keys: readonly KeyData[], at: number): number | null {
  const { state, caused_by: causes } = keys[at] as KeyData;
  if (state !== "consequence") return null;
  const named = (index: number) => causes.includes(keys[index]?.key ?? "");
  if (named(at - 1)) return at - 1;
  const found = keys.findIndex(({ state: own }, index) => named(index) && own === "differs");
  if (found >= 0) return found;
  const any = keys.findIndex((_, index) => named(index));
  return any >= 0 ? any : null;
}

/** The two lines below a key's name, and what is said of it in full. */
export function keyLines(
  data: KeyData,
  cause: string | null,
  names: Record<"left" | "right", string>,
  t: Messages,
  format: (count: number) => string,
) {
  const words = t.loop.pipeline;
  const { state, counts, tables, first } = data;
  const bad = format(counts.differs);
  const aside = asideText(data, names, t, format);
  switch (state) {
    case "equal":
      return { state: t.loop.keyDataStates.equal, detail: aside || words.equalOf(format(counts.equal), format(tables)) };
    case "padding":
      return { state: t.loop.keyDataStates.padding, detail: aside || words.equalOf(format(counts.padding ?? 0), format(tables)) };
    case "differs":
      return { state: words.differs(bad, format(tables)), detail: first === null ? "" : placeText(first, t, ["step", "rank"]) };
    case "consequence":
      return {
        state: t.loop.keyDataStates.consequence,
        detail: cause === null ? words.differOf(bad, format(tables)) : words.from(cause),
      };
    case "left_only":
      return { state: words.onlyIn(names.left), detail: t.loop.key.tables(tables, format(tables)) };
    case "right_only":
      return { state: words.onlyIn(names.right), detail: t.loop.key.tables(tables, format(tables)) };
    default:
      return { state: t.loop.keyDataStates.not_compared, detail: aside };
  }
}

/** The tables that the state of their key does not speak for: on one side only, not compared, other in padding alone. */
export function asideText(
  { state, counts }: KeyData,
  names: Record<"left" | "right", string>,
  t: Messages,
  format: (count: number) => string,
): string {
  const words = t.loop.pipeline;
  const missed = (counts.not_read ?? 0) + (counts.not_comparable ?? 0);
  return [
    state === "left_only" || counts.left_only === 0 ? "" : words.someOnlyIn(format(counts.left_only), names.left),
    state === "right_only" || counts.right_only === 0 ? "" : words.someOnlyIn(format(counts.right_only), names.right),
    missed === 0 ? "" : words.someNotCompared(format(missed)),
    state === "padding" || !counts.padding ? "" : words.somePadding(format(counts.padding)),
  ]
    .filter(Boolean)
    .join(t.common.comma);
}

/** The key that the page opens on: the first with a cause of its own, else the first that is not equal, else the first. */
export function openingKey(verdict: Pick<RunVerdict, "key_data" | "first">): KeyData | null {
  const { key_data: keys, first } = verdict;
  return (
    keys.find(({ key }) => key === first?.key_data) ??
    keys.find(({ state }) => state === "differs") ??
    keys.find(({ state }) => state !== "equal" && state !== "padding") ??
    keys[0] ??
    null
  );
}

/** The earliest step at which any table differs; null where none does or tables have no steps. */
export function firstStep(keys: readonly KeyData[]): number | null {
  const steps = keys.map(({ first }) => first?.step ?? null).filter((step) => step !== null);
  return steps.length === 0 ? null : Math.min(...steps);
}

/** A setting's value as it stands in a file. */
export function valueText(value: unknown): string {
  return typeof value === "string" ? value : (JSON.stringify(value) ?? "");
}

/** How many ranks of a part diverge, where the verdict says it of each. */
export function divergedRanks({ by_rank: byRank }: RunPart): number | null {
  return byRank === undefined || byRank.length < 2 ? null : byRank.filter(({ verdict }) => verdict === "diverged").length;
}
