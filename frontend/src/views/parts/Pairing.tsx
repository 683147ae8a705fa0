import { useMemo, useState } from "react";
import { useLocation } from "wouter";
import { createComparison } from "../../api/queries";
import type { RunVerdict } from "../../api/run-verdict";
import type { Comparison } from "../../api/types";
import { useI18n } from "../../i18n";
import { errorSentence } from "../../i18n/errors";
import { Button } from "../../ui/button";
import { SideMark } from "../../ui/side";
import styles from "./pairing.module.css";
import tables from "./tables.module.css";

/** Which stage was compared with which and why, where there are stages; another pairing makes another comparison of the same two runs. */
export function Pairing({ comparison, verdict }: { comparison: Comparison; verdict: RunVerdict }) {
  const { t, language, format } = useI18n();
  const words = t.loop.pairing;
  const [, navigate] = useLocation();
  const [busy, setBusy] = useState(false);
  const [problem, setProblem] = useState<string | null>(null);
  const pairs = verdict.stage_pairs ?? [];
  const stages = useMemo(
    () => ({ left: stagesOf(verdict, comparison, "left"), right: stagesOf(verdict, comparison, "right") }),
    [verdict, comparison],
  );
  const { left, right, read_only: readOnly } = comparison;
  const changeable = !readOnly && left.id !== null && right.id !== null && stages.left.length > 0 && stages.right.length > 0;
  const staged = pairs.some((pair) => pair.left !== null || pair.right !== null || pair.reason === "tokens");
  if (!staged && !(changeable && stages.left.length + stages.right.length > 2)) return null;

  const compare = async (stage: string) => {
    if (busy || left.id === null || right.id === null) return;
    setBusy(true);
    setProblem(null);
    try {
      const made = await createComparison(left.id, right.id, { ...comparison.options, stage });
      navigate(`/c/${made.id}`);
    } catch (error) {
      setProblem(errorSentence(error, language));
    } finally {
      setBusy(false);
    }
  };

  return (
    <section className={tables.section} aria-label={words.title}>
      <header className={tables.header}>
        <h2>{words.title}</h2>
        {problem === null ? null : (
          <span role="alert" className={tables.bad}>
            {words.failed}: {problem}
          </span>
        )}
      </header>
      <ul className={styles.pairs}>
        {pairs.map((pair) => (
          <li key={`${pair.left} ${pair.right} ${pair.used}`} className={styles.pair} data-used={pair.used}>
            <span className={styles.stages}>
              <SideMark side="left" /> <b>{pair.left ?? t.parts.noStage}</b> ↔ <SideMark side="right" />{" "}
              <b>{pair.right ?? t.parts.noStage}</b>
            </span>
            <span className={styles.reason}>{pair.text[language]}</span>
            {pair.used ? (
              <span className={styles.used}>
                {words.used}
                {t.common.comma}
                {words.parts(pair.parts, format.count(pair.parts))}
              </span>
            ) : changeable && pair.option !== null ? (
              <CompareButton option={pair.option} busy={busy} onCompare={compare} />
            ) : null}
          </li>
        ))}
      </ul>
      {changeable ? <Own stages={stages} busy={busy} onCompare={compare} /> : null}
    </section>
  );
}

function CompareButton({ option, busy, onCompare }: { option: string; busy: boolean; onCompare: (option: string) => Promise<void> }) {
  const { t } = useI18n();
  return (
    <Button className={styles.button} aria-disabled={busy || undefined} onClick={() => void onCompare(option)}>
      {t.loop.pairing.compare}
    </Button>
  );
}

function stagesOf(verdict: RunVerdict, comparison: Comparison, side: "left" | "right"): readonly string[] {
  const held = verdict.parts.map((part) => part[side]?.stage ?? null).filter((stage) => stage !== null);
  return [...new Set([...held, ...(comparison[side].inventory?.stages ?? [])])];
}

function Own({
  stages,
  busy,
  onCompare,
}: {
  stages: Record<"left" | "right", readonly string[]>;
  busy: boolean;
  onCompare: (option: string) => Promise<void>;
}) {
  const { t } = useI18n();
  const words = t.loop.pairing;
  const [chosen, setChosen] = useState({ left: stages.left[0] ?? "", right: stages.right[0] ?? "" });
  return (
    <form
      className={styles.own}
      onSubmit={(event) => {
        event.preventDefault();
        void onCompare(`${chosen.left}:${chosen.right}`);
      }}
    >
      {(["left", "right"] as const).map((side) => (
        <label key={side} className={styles.choice}>
          <SideMark side={side} />
          <span className="visually-hidden">{words[side]}</span>
          <select value={chosen[side]} onChange={({ target }) => setChosen((known) => ({ ...known, [side]: target.value }))}>
            {stages[side].map((stage) => (
              <option key={stage}>{stage}</option>
            ))}
          </select>
        </label>
      ))}
      <Button type="submit" aria-disabled={busy || undefined}>
        {busy ? words.starting : words.compare}
      </Button>
    </form>
  );
}
