import { type ReactNode, useCallback, useMemo } from "react";
import { useLoop } from "../../api/key-data";
import type { Comparison, RunPart } from "../../api/types";
import { useI18n } from "../../i18n";
import { cellState, partsSoFar, soFar, verdictSoFar } from "../../model/parts";
import { useViewState } from "../../use-view-state";
import { KeyDataPanel } from "../key-data/KeyDataPanel";
import { openPart, openTable } from "./open";
import { PartsGrid } from "./PartsGrid";
import { Pipeline } from "./Pipeline";
import { PipelinePending } from "./PipelinePending";
import styles from "./parts-page.module.css";
import { RetryPart } from "./RetryPart";
import { RunLegend } from "./RunLegend";
import { RunSections } from "./RunSections";
import { openingKey } from "./run-words";
import { SoFarBlock } from "./SoFarBlock";
import { sideNames } from "./words";

interface Props {
  comparison: Comparison;
  slug: string;
  /** The part that the reader comes back from. */
  from: number | null;
  /** What stands above: why it ended without a verdict. Absent while it goes on, then it is what is known so far. */
  ended?: ReactNode;
}

/**
 * A comparison of several parts before its verdict: what is done can be opened, key data and settings stand as soon as they are compared, for
 * no part changes them. The frame is that of the finished page, so that little moves when the verdict comes.
 */
export function PartsSoFar({ comparison, slug, from, ended }: Props) {
  const { t, format } = useI18n();
  const [{ table }] = useViewState();
  const parts = useMemo(() => partsSoFar(comparison.parts), [comparison.parts]);
  const names = useMemo(() => sideNames(comparison, t), [comparison, t]);
  const states = useMemo(() => new Set(parts.map((part) => cellState({ part, rank: null }))), [parts]);
  const known = useMemo(() => soFar(parts), [parts]);
  const { loop: piece } = comparison;
  const compared = piece?.state === "done";
  const { data: loop = null } = useLoop(slug, compared);
  const verdict = useMemo(() => verdictSoFar(parts, loop), [parts, loop]);
  const keys = verdict.key_data;
  const key = keys.find(({ n }) => n === table) ?? openingKey(verdict);
  const { earliest } = known;
  const first = useMemo(() => (earliest === null ? null : { n: earliest.n, rank: null, word: t.parts.provisional.first }), [earliest, t]);
  const action = useCallback(
    (part: RunPart) => <RetryPart key={part.n} slug={slug} comparison={comparison} part={part} />,
    [slug, comparison],
  );
  const pending = piece !== null && (loop === null || piece.state === "failed");
  const stopped = ended !== undefined && !compared;
  return (
    <div className={styles.page}>
      {ended ?? <SoFarBlock slug={slug} comparison={comparison} soFar={known} loop={loop} />}
      {pending ? <PipelinePending error={piece.error} stopped={stopped} /> : null}
      {keys.length === 0 ? null : <Pipeline verdict={verdict} names={names} selected={key?.n ?? null} onSelect={openTable} />}
      <div className={styles.columns} data-both={key !== null} data-going={ended === undefined}>
        <div className={styles.left}>
          <PartsGrid
            parts={parts}
            first={first}
            entry={from ?? parts[0]?.n ?? null}
            returned={from !== null}
            quiet={ended === undefined}
            names={names}
            onOpen={openPart}
            action={action}
          />
          <RunSections verdict={verdict} names={names} />
        </div>
        {key === null ? null : (
          <div className={styles.right}>
            <KeyDataPanel slug={slug} data={key} names={names} ready={compared} />
          </div>
        )}
      </div>
      <RunLegend
        states={states}
        first={first === null ? null : first.word}
        line={(known.done > 0 ? t.parts.soFar : t.parts.provisional.compared)(format.count(known.done), format.count(known.all))}
      />
    </div>
  );
}
