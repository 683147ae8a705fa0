import { useMutation, useQueryClient } from "@tanstack/react-query";
import { cancelComparison } from "../../api/queries";
import type { Comparison, ComparisonSide, Progress } from "../../api/types";
import { type Format, type Messages, useI18n } from "../../i18n";
import { errorSentence } from "../../i18n/errors";
import { bytesOf, share } from "../../i18n/format";
import { Button } from "../../ui/button";
import { Glyph } from "../../ui/glyph";
import { dataLine, extentLine } from "../../ui/run-facts";
import { type Side, SideMark } from "../../ui/side";
import styles from "./running.module.css";
import { stageOf } from "./stage";

const STAGES: readonly string[] = ["read", "align", "measure", "diagnose", "store"];

/** A comparison on its way: what it waits for, which stage it is in, with numbers, and how to stop it. */
export function Running({ slug, comparison }: { slug: string; comparison: Comparison }) {
  const { t } = useI18n();
  const stage = stageOf(comparison, null);
  const texts = {
    waiting: [t.comparison.waitingTitle, t.comparison.waitingText],
    queued: [t.comparison.queuedTitle, t.comparison.queuedText],
    running: [t.comparison.runningTitle, t.comparison.verdictFirst],
  } as const;
  const [title, text] = texts[stage === "waiting" || stage === "queued" ? stage : "running"];
  return (
    <section className={styles.running}>
      <header className={styles.header}>
        <h1 className={styles.title}>
          <Glyph name={stage === "running" ? "running" : "queued"} size={20} />
          {title}
        </h1>
        <p className={styles.text}>{text}</p>
      </header>
      <div className={styles.sides}>
        <SideState side="left" run={comparison.left} />
        <SideState side="right" run={comparison.right} />
      </div>
      <Stages progress={comparison.progress} waiting={stage !== "running"} />
      {comparison.read_only ? null : <CancelButton slug={slug} requested={comparison.cancel_requested_at !== null} />}
    </section>
  );
}

function SideState({ side, run }: { side: Side; run: ComparisonSide }) {
  const { t, format } = useI18n();
  return (
    <div className={styles.side}>
      <SideMark side={side} />
      <span className={styles.runName} title={run.name}>
        {run.name}
      </span>
      <span className={styles.runState}>{sideLine(run, t, format)}</span>
    </div>
  );
}

function sideLine(run: ComparisonSide, t: Messages, format: Format): string {
  if (run.inventory !== null) {
    const { stages, steps, ranks, counts } = run.inventory;
    if (counts.dumps === 0) return "";
    const extent = extentLine(stages.length, steps.length, ranks.length, t, format);
    return `${dataLine(run.inventory, t)} · ${t.card.extentLine(extent, t.card.records(counts.records, format.count(counts.records)))}`;
  }
  if (run.state === "queued") return t.card.queued;
  const { fraction } = run.progress;
  return fraction === undefined ? t.card.parsing : t.card.parsingPercent(share(fraction, 1));
}

/** The five stages; those behind are full, the present one moves. */
function Stages({ progress, waiting }: { progress: Progress; waiting: boolean }) {
  const { t, format } = useI18n();
  const at = waiting ? -1 : Math.max(0, STAGES.indexOf(progress.stage ?? ""));
  return (
    <ol className={styles.stages} aria-label={t.comparison.progress}>
      {STAGES.map((stage, index) => {
        const fraction = index < at ? 1 : index === at ? Math.min(1, progress.fraction ?? 0) : 0;
        const name = t.state.stages[stage] ?? stage;
        return (
          <li key={stage} className={styles.stage} aria-current={index === at ? "step" : undefined}>
            <div
              className={styles.bar}
              role="progressbar"
              aria-label={name}
              aria-valuemin={0}
              aria-valuemax={100}
              aria-valuenow={Math.floor(fraction * 100)}
            >
              <div className={styles.barDone} style={{ transform: `scaleX(${fraction})` }} />
            </div>
            <span className={styles.stageName}>{name}</span>
            <span className={styles.stageFigures}>{index === at ? figures(progress, t, format) : ""}</span>
          </li>
        );
      })}
    </ol>
  );
}

/** 61 % · 190 of 318 records: the share, and whatever the worker counts. */
export function figures(progress: Progress, t: Messages, format: Format): string {
  const { fraction, bytes: done, of, records, pairs, parts: ended, running } = progress;
  const words = t.comparison.numbers;
  const parts = fraction === undefined ? [] : [share(fraction, 1)];
  if (typeof done === "number" && typeof of === "number") parts.push(words.bytes(...bytesOf(done, of)));
  else if (typeof ended === "number" && typeof of === "number" && typeof running === "number")
    parts.push(words.partsOf(format.count(ended), format.count(of), format.count(running)));
  else if (typeof records === "number" && typeof of === "number") parts.push(words.recordsOf(format.count(records), format.count(of)));
  else if (typeof records === "number") parts.push(words.records(format.count(records)));
  else if (typeof pairs === "number" && typeof of === "number") parts.push(words.pairsOf(format.count(pairs), format.count(of)));
  else if (typeof pairs === "number") parts.push(words.pairs(format.count(pairs)));
  return parts.join(" · ");
}

function CancelButton({ slug, requested }: { slug: string; requested: boolean }) {
  const { t, language } = useI18n();
  const queries = useQueryClient();
  const cancel = useMutation({ mutationFn: () => cancelComparison(queries, slug) });
  const busy = requested || cancel.isPending;
  return (
    <div className={styles.actions}>
      <Button aria-disabled={busy} onClick={() => cancel.mutate()}>
        {busy ? t.comparison.cancelling : t.comparison.cancel}
      </Button>
      {cancel.error === null ? null : (
        <p role="alert" className={styles.problem}>
          {errorSentence(cancel.error, language)}
        </p>
      )}
    </div>
  );
}
