import type { ComparisonSide } from "../api/types";
import type { Messages } from "../i18n";
import type { Side } from "./side";

/** What is known of the role of a run; null: nothing stands on that side. */
export type Told = Pick<ComparisonSide, "role" | "inventory"> | null;

/** Where a run of each role usually stands, and what an empty side waits for. */
const USUAL = { left: "train", right: "infer" } as const;

/** What its sender said, else what was read from it; "unknown" where the dump does not tell, null before anything is known. */
export function roleOf(run: Told): "train" | "infer" | "unknown" | null {
  if (run === null) return null;
  if (run.role !== "auto") return run.role;
  return run.inventory?.role ?? null;
}

/** Both runs are known and of one role: they are told apart by where they stand, as the verdict does. */
export function sameRole(left: Told, right: Told): boolean {
  const role = roleOf(left);
  return role !== null && role === roleOf(right);
}

/** "Train" or "Inference" by each run's own role, on whichever side it stands; "Left" and "Right" where both would be called the same. */
export function sideTitles(left: Told, right: Told, t: Messages): Record<Side, string> {
  const roles = { left: named(left, "left"), right: named(right, "right") };
  if (sameRole(left, right) || roles.left === roles.right) return { left: t.common.left, right: t.common.right };
  return { left: t.common[roles.left], right: t.common[roles.right] };
}

function named(run: Told, side: Side): "train" | "infer" {
  const role = roleOf(run);
  return role === "train" || role === "infer" ? role : USUAL[side];
}
