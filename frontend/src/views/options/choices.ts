import type { Inventory, Params } from "../../api/types";
import type { Side } from "../../ui/side";

/** What a reader chose, as the fields hold it; "" chooses nothing. */
export interface Choices {
  readonly step: Readonly<Record<Side, string>>;
  readonly rank: Readonly<Record<Side, string>>;
  readonly stage: Readonly<Record<Side, string>>;
  readonly exact: boolean;
  /** A run's link or id. */
  readonly baseline: string;
  readonly mapping: string;
}

export const PLACES = ["step", "rank", "stage"] as const;
export type Place = (typeof PLACES)[number];

const NEITHER = { left: "", right: "" } as const;
export const NO_CHOICES: Choices = { step: NEITHER, rank: NEITHER, stage: NEITHER, exact: false, baseline: "", mapping: "" };

/** The options of a comparison (`docs/http.md`). A side without a choice of its own takes the other's, as one bare value does. */
export function optionsOf(choices: Choices): Params {
  const options: Record<string, unknown> = {};
  for (const place of PLACES) {
    const left = choices[place].left.trim();
    const right = choices[place].right.trim();
    if (left === "" && right === "") continue;
    options[place] = left === "" || right === "" || left === right ? left || right : `${left}:${right}`;
  }
  if (choices.exact) options.exact = true;
  const baseline = runIdOf(choices.baseline);
  if (baseline !== "") options.baseline = baseline;
  if (choices.mapping.trim() !== "") options.mapping = choices.mapping;
  return options;
}

/** The fields that say what a comparison was begun with. One bare value stands at each side that can have been meant by it. */
export function choicesOf(options: Params, inventories: Readonly<Record<Side, Inventory | null>>): Choices {
  const ends = (place: Place) => {
    const value = options[place];
    if (typeof value !== "string" && typeof value !== "number") return NEITHER;
    const [left = "", right] = String(value).split(":");
    if (right !== undefined) return { left, right };
    const onLeft = heldBy(inventories.left, place)?.includes(left) ?? true;
    const onRight = heldBy(inventories.right, place)?.includes(left) ?? true;
    return { left: onLeft || !onRight ? left : "", right: onRight ? left : "" };
  };
  const text = (name: string) => (typeof options[name] === "string" ? options[name] : "");
  return {
    step: ends("step"),
    rank: ends("rank"),
    stage: ends("stage"),
    exact: options.exact === true,
    baseline: text("baseline"),
    mapping: text("mapping"),
  };
}

/** `http://…/r/<id>` or `/r/<id>#…` → the id; anything else as it is. */
export function runIdOf(text: string): string {
  const link = /\/r\/([^/?#\s]+)/.exec(text);
  return link === null ? text.trim() : (link[1] as string);
}

/** What a side holds to choose from; null while the dump has not been read: then any value may be typed. */
export function heldBy(inventory: Inventory | null, place: Place): readonly string[] | null {
  if (inventory === null) return null;
  const held = { step: inventory.steps, rank: inventory.ranks, stage: inventory.stages }[place];
  return held.map(String);
}

/** A field of nothing but digits: what else is typed is left out. */
export function digits(text: string): string {
  return text.replace(/\D/g, "").slice(0, 9);
}
