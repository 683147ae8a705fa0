import type { RunVerdict } from "../../api/run-verdict";
import { useI18n } from "../../i18n";
import { isOneSided } from "../../model/parts";
import { PremiseChips } from "../compare/PremiseChips";

/** What the answer rests on: same prompts and responses, same parts, settings, what each run's own checks say. */
export function RunPremises({ verdict }: { verdict: RunVerdict }) {
  const { t, format } = useI18n();
  const words = t.loop.premises;
  const premises: { code: string; text: string; ok: boolean }[] = [];
  for (const { key, kind, state } of verdict.key_data) {
    if (kind !== "tokens") continue;
    const differs = state === "differs" || state === "consequence";
    const text = state === "equal" ? key : differs ? words.keyDiffers(key) : words.keyIs(key, t.loop.keyDataStates[state]);
    premises.push({ code: key, text, ok: state === "equal" });
  }
  const unpaired = verdict.parts.filter(isOneSided).length;
  if (verdict.parts.length > 0)
    premises.push({
      code: "parts",
      text: unpaired === 0 ? words.sameParts : words.unpaired(unpaired, format.count(unpaired)),
      ok: unpaired === 0,
    });
  const matter = verdict.configurations.filter(({ matters }) => matters).length;
  if (matter > 0) premises.push({ code: "settings", text: words.settings(matter, format.count(matter)), ok: false });
  // Two runs of one loop may share what would part training from inference: the engine says where that is the question.
  const crossed = (verdict.findings ?? []).some(({ code }) => code === "preconditions_failed");
  const failing = (verdict.preconditions ?? []).filter(({ left, right }) => left.state === "failed" || right.state === "failed").length;
  if (crossed && failing > 0)
    premises.push({ code: "preconditions", text: words.preconditions(failing, format.count(failing)), ok: false });
  const checks = (verdict.checks ?? []).filter(({ state }) => state === "failed").length;
  if (checks > 0) premises.push({ code: "checks", text: words.checks(checks, format.count(checks)), ok: false });
  const holding = premises.filter(({ ok }) => ok).length;
  if (premises.length === 0) return null;
  return (
    <PremiseChips
      label={words.label}
      summary={`${words.label} ${holding}/${premises.length}`}
      chips={premises.map(({ code, text, ok }) => ({ code, text, state: ok ? "ok" : "failed", word: ok ? words.holds : words.fails }))}
    />
  );
}
