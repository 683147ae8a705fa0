import type { RunVerdict } from "../../api/run-verdict";
import { Drift } from "./Drift";
import { Preconditions } from "./Preconditions";
import { SelfChecks } from "./SelfChecks";
import { Settings } from "./Settings";

interface Props {
  verdict: Pick<RunVerdict, "configurations" | "drift" | "checks" | "preconditions" | "first">;
  names: Record<"left" | "right", string>;
}

/** What stands behind key data and parts: settings, how differences move over the steps, what each run says of itself. */
export function RunSections({ verdict, names }: Props) {
  const drifting = (verdict.drift ?? []).filter(({ kind }) => kind !== "none");
  return (
    <>
      <Settings settings={verdict.configurations} names={names} />
      {drifting.length === 0 ? null : (
        <Drift lines={drifting} first={{ key: verdict.first?.key_data ?? null, stage: verdict.first?.stage ?? null }} />
      )}
      <SelfChecks checks={verdict.checks ?? []} names={names} />
      <Preconditions preconditions={verdict.preconditions ?? []} names={names} />
    </>
  );
}
