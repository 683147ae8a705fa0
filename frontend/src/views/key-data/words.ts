import type { KeyTable, KeyTables } from "../../api/run-verdict";
import type { Num } from "../../api/types";
import { figure } from "../../i18n/format";

/** Whether a table asks for a look: it differs, or is not known to be the same. */
export function isDiffering({ state }: Pick<KeyTable, "state">): boolean {
  return state !== "equal" && state !== "padding";
}

/** The table that a key opens on: the first that differs with values to show, else the first that differs, else the first. */
export function openingTable({ tables }: Pick<KeyTables, "tables">): KeyTable | null {
  return tables.find((table) => isDiffering(table) && table.evidence === "values") ?? tables.find(isDiffering) ?? tables[0] ?? null;
}

/** `[1, 5]`, or both where they differ: `[1, 5] | [1, 6]`. */
export function shapeText({ left_shape: left, right_shape: right }: Pick<KeyTable, "left_shape" | "right_shape">): string {
  const one = (shape: readonly number[] | null) => (shape === null ? "–" : `[${shape.join(", ")}]`);
  const [a, b] = [one(left), one(right)];
  return a === b ? a : `${a} | ${b}`;
}

/** A share of 0 … 100 as it stands in a column: never 100 while something differs. */
export function shareText(share: Num | null): string {
  const plain = figure(share);
  if (plain === null) return "–";
  if (plain === 100 || plain === 0) return `${plain}`;
  if (plain > 99.995) return "99.99…";
  return plain < 0.005 ? "<\u00a00.01" : plain.toFixed(2);
}

/** Whether a table differs in its shape alone: a share of what both have would say that it does not. */
export function differsInShape(table: Pick<KeyTable, "state" | "cropped" | "same">): boolean {
  return table.cropped && isDiffering(table) && table.same === 100;
}

/** The largest difference of a table as it stands in a column; where it is 0 although the table differs, what sets the two apart: NaN, or the shape. */
export function largestText(table: Pick<KeyTable, "state" | "nan">, largest: Num | null, written: string): string {
  if (largest !== 0 || !isDiffering(table)) return written;
  const [left, right, shared] = table.nan ?? [0, 0, 0];
  return left + right > 2 * shared ? "NaN" : "–";
}

/** What |a−b| is of the larger of the two, with the sign of b−a; 0 where both are 0, null where either is no number. */
export function relativeOf(left: Num | null, right: Num | null): number | null {
  const [a, b] = [figure(left), figure(right)];
  if (a === null || b === null || !Number.isFinite(a) || !Number.isFinite(b)) return null;
  return a === b ? 0 : (b - a) / Math.max(Math.abs(a), Math.abs(b));
}

/** Whether two values are the same, NaN and NaN included, and one that is not there equal to nothing. */
export function sameValue(left: Num | null, right: Num | null): boolean {
  return left !== null && left === right;
}

/** A token as its id, other values in four digits are the caller's. */
export function tokenText(value: Num | null): string {
  return value === null ? "–" : `${value}`;
}
