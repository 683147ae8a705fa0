import { asRequestError } from "../../api/problem";
import type { Comparison } from "../../api/types";

/** What the page shows of a comparison. */
export type Stage =
  | "loading"
  | "waiting"
  | "queued"
  | "running"
  | "verdict"
  | "failed"
  | "cancelled"
  | "interrupted"
  | "missing"
  | "forbidden"
  | "unreachable"
  | "refused";

/** Data that was seen once stays on screen when the server stops answering; a refusal does not. */
export function stageOf(comparison: Comparison | undefined, error: Error | null): Stage {
  if (comparison === undefined) return error === null ? "loading" : stageOfError(error);
  if (error !== null && asRequestError(error).status === 404) return "missing";
  switch (comparison.state) {
    case "failed":
    case "cancelled":
    case "interrupted":
      return comparison.state;
    default:
      if (comparison.verdict !== null) return "verdict";
      if (comparison.state !== "queued") return "running";
      return comparison.left.state === "ready" && comparison.right.state === "ready" ? "queued" : "waiting";
  }
}

function stageOfError(error: Error): Stage {
  const { status, passing } = asRequestError(error);
  if (status === 404 || status === 410) return "missing";
  if (status === 401 || status === 403) return "forbidden";
  return passing ? "unreachable" : "refused";
}

/** Faults of the machine and the moment; every other code says something about a dump, which trying again does not change. */
const PASSING_FAULTS = new Set(["worker_lost", "worker_killed", "out_of_memory", "time_limit", "disk_full", "internal"]);

export function worthRetrying(code: string): boolean {
  return PASSING_FAULTS.has(code);
}
