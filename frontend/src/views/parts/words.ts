import type { LoopDocument, PartVerdictWord } from "../../api/run-verdict";
import type { Comparison, Origin, RunPart, RunVerdict } from "../../api/types";
import type { Messages } from "../../i18n";
import { problemSentence } from "../../i18n/errors";
import { type Cell, type CellState, cellState, firstOrigin, type SoFar } from "../../model/parts";
import { splitHeadline } from "../../ui/headline";
import type { Language } from "../../ui/preferences";
import { sideTitles } from "../../ui/side-words";
import { originWhat, placeName } from "../compare/words";

/** Sentences about the parts of a run verdict, from the document alone. */

/** The step, or both where the two sides' differ. */
export function stepText(part: RunPart, t: Messages): string {
  const { left, right } = part;
  if (left !== null && right !== null && left.step !== right.step) return t.parts.pair(`${left.step ?? "–"}`, `${right.step ?? "–"}`);
  return part.step === null ? "–" : `${part.step}`;
}

export function stageText(part: RunPart, t: Messages): string {
  const { left, right } = part;
  if (left !== null && right !== null && left.stage !== right.stage) return t.parts.pair(left.stage ?? "–", right.stage ?? "–");
  return part.stage ?? "–";
}

/** `step 2 · reference_compute_log_prob`: what a part is called. */
export function partName(part: RunPart, t: Messages): string {
  const step = part.step === null ? t.parts.noStep : t.parts.step(stepText(part, t));
  const stage = stageText(part, t);
  return stage === "–" ? step : `${step} · ${stage}`;
}

/** Of the numbers the Norm alone: `max_rel` is the worse of Max and Min, and only the part itself says which. */
export function divergenceWhat(origin: Origin, t: Messages): string {
  return originWhat({ ...origin, evidence: { norm_rel: origin.evidence.norm_rel ?? null } }, t.compare);
}

/** Where the part parts first and what it is, or why it has no such place. */
export function partReason(
  part: RunPart,
  names: Record<"left" | "right", string>,
  t: Messages,
  language: Language,
): { where: string; what: string } {
  if (part.state !== undefined && part.state !== "done") {
    return { where: "", what: part.error == null ? t.parts.stateReasons[part.state] : problemSentence(part.error, language) };
  }
  const origin = part.first_divergence;
  if (origin !== null) return { where: placeName(origin.module), what: divergenceWhat(origin, t) };
  const difference = part.first_difference;
  switch (part.verdict) {
    case "diverged":
      return { where: difference === null ? "" : placeName(difference.module), what: "" };
    case "identical":
      return { where: "", what: t.parts.identicalReason };
    case "consistent": {
      if (difference === null) return { where: "", what: t.parts.quietReason };
      return { where: "", what: t.parts.firstDifference(placeName(difference.module), t.compare.grades[difference.grade]) };
    }
    case "not_comparable":
      return { where: "", what: t.parts.notComparableReason };
    case "left_only":
      return { where: "", what: t.parts.onlyReason(names.left) };
    case "right_only":
      return { where: "", what: t.parts.onlyReason(names.right) };
    case null:
      return { where: "", what: "" };
  }
}

/** `mark`: what the one cell is called that stands out, null for all others. */
export function stateWord(state: CellState, mark: string | null, t: Messages): string {
  if (mark !== null) return mark;
  return state in t.parts.verdicts
    ? t.parts.verdicts[state as PartVerdictWord]
    : t.parts.states[state as keyof Messages["parts"]["states"]];
}

/** What a cell is called: its part, its rank, its verdict, and the module or the reason. */
export function cellName(
  cell: Cell,
  mark: string | null,
  names: Record<"left" | "right", string>,
  t: Messages,
  language: Language,
): string {
  const { part, rank } = cell;
  const state = cellState(cell);
  const { where, what } = partReason(part, names, t, language);
  // A rank that agrees has not parted where its part has, nor need another that diverged.
  const elsewhere = rank !== null && (state !== part.verdict || ![null, rank].includes(part.first_divergence?.rank ?? null));
  const reason = elsewhere ? "" : where === "" ? what.replace(/[.。]$/, "") : where;
  const place = rank === null ? partName(part, t) : `${partName(part, t)} · ${t.parts.rank(`${rank}`)}`;
  return [place, stateWord(state, mark, t), reason].filter(Boolean).join(t.common.comma);
}

/** The verdict's sentence: in bold where, after it what; the first divergence says what in its part. */
export function runSentence(verdict: RunVerdict, language: Language, t: Messages): { where: string; what: string } {
  const [where, what] = splitHeadline(verdict.headline[language]);
  if (where !== "") return { where, what: what.replace(/^ — /, "") };
  const origin = firstOrigin(verdict);
  return { where: what, what: origin === null ? "" : divergenceWhat(origin, t) };
}

/** `2 of 12 parts diverge · 10 identical` */
export function countsLine(parts: readonly RunPart[], t: Messages, format: (count: number) => string): string {
  const ended = parts.filter(({ state }) => state === undefined || state === "done");
  const count = (...words: readonly PartVerdictWord[]) => ended.filter(({ verdict }) => verdict !== null && words.includes(verdict)).length;
  const { diverged, ...others } = t.parts.counts;
  const bad = count("diverged");
  const line = [bad > 0 ? diverged(bad, format(bad), format(parts.length)) : t.parts.count(parts.length, format(parts.length))];
  for (const word of ["consistent", "identical", "not_comparable"] as const) {
    const found = count(word);
    if (found > 0) line.push(others[word](found, format(found)));
  }
  const only = count("left_only", "right_only");
  if (only > 0) line.push(others.only(only, format(only)));
  const waiting = parts.filter(({ state }) => state === "queued" || state === "running").length;
  if (waiting > 0) line.push(others.waiting(waiting, format(waiting)));
  const failed = parts.filter(({ state }) => state === "failed").length;
  if (failed > 0) line.push(others.failed(failed, format(failed)));
  return line.join(" · ");
}

/**
 * Where the parts that are compared part first, as far as one can tell: never more than the parts that are done say. As long as none of them
 * diverges, the table that differs first: key data are compared whole by then.
 */
export function soFarSentence(
  { all, done, earliest, before }: SoFar,
  module: string | null,
  loop: Pick<LoopDocument, "first"> | null,
  t: Messages,
  language: Language,
  format: (count: number) => string,
): { where: string; what: string } {
  const words = t.parts.provisional;
  const compared = words.compared(format(done), format(all));
  if (earliest === null && loop?.first != null) {
    const { key, since, meaning } = loop.first;
    const parts = done === 0 ? compared : [compared, words.noneDiverges].join(t.common.comma);
    return { where: words.tableFirst(key, since[language]), what: [meaning[language], parts].filter(Boolean).join(t.common.semicolon) };
  }
  if (earliest === null) return { where: done === 0 ? words.nothing : words.none, what: compared };
  const where = words.earliest([partName(earliest, t), module].filter(Boolean).join(t.common.comma));
  const rest =
    before.open > 0
      ? words.earlierOpen(format(before.open))
      : before.failed > 0
        ? words.earlierFailed(format(before.failed))
        : before.agreeing === before.all
          ? words.earlierAgree
          : "";
  return { where, what: [compared, rest].filter(Boolean).join(t.common.semicolon) };
}

/** What the two runs are called; where both have one name, two logs called verl.log, by the sides that they stand on. */
export function sideNames({ left, right }: Pick<Comparison, "left" | "right">, t: Messages): Record<"left" | "right", string> {
  if (left.name === right.name) return sideTitles(left, right, t);
  return { left: left.name, right: right.name };
}
