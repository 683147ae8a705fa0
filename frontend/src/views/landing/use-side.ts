import { useSyncExternalStore } from "react";
import { useRun } from "../../api/queries";
import type { Run } from "../../api/types";
import type { Side } from "../../ui/side";
import { type SideView, sides } from "../../upload/side";

export interface SideHolding {
  readonly view: SideView;
  /** The run on the server, once there is one and it answered. */
  readonly run: Run | null;
  /** Why the server does not show the run: deleted in the meantime, or no answer. */
  readonly runError: Error | null;
}

export function useSide(side: Side): SideHolding {
  const upload = sides[side];
  const view = useSyncExternalStore(upload.subscribe, upload.view);
  const run = useRun(view.phase === "run" ? view.id : null);
  return { view, run: run.data ?? null, runError: run.error };
}

/** The id of a run that can be compared: there, and not failed. */
export function comparable({ view, run, runError }: SideHolding): string | null {
  if (view.phase !== "run" || run?.state === "failed" || runError !== null) return null;
  return view.id;
}
