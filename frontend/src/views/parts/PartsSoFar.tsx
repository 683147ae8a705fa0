import { useMemo } from "react";
import type { Comparison } from "../../api/types";
import { useI18n } from "../../i18n";
import { cellState, partsSoFar } from "../../model/parts";
import { PartsGrid } from "./PartsGrid";
import { openPart } from "./PartsPage";
import styles from "./parts-so-far.module.css";
import { RunLegend } from "./RunLegend";
import { sideNames } from "./words";

/** The parts while they are being compared, or of a comparison that ended before its verdict: what is done can be opened. */
export function PartsSoFar({ comparison, from }: { comparison: Comparison; from: number | null }) {
  const { t, format } = useI18n();
  const parts = useMemo(() => partsSoFar(comparison.parts), [comparison.parts]);
  const names = useMemo(() => sideNames(comparison), [comparison]);
  const states = useMemo(() => new Set(parts.map((part) => cellState({ part, rank: null }))), [parts]);
  const done = parts.filter(({ state }) => state === "done").length;
  const entry = from ?? parts[0]?.n ?? null;
  return (
    <div className={styles.soFar}>
      <PartsGrid parts={parts} first={null} entry={entry} returned={from !== null} names={names} onOpen={openPart} />
      <RunLegend states={states} first={false} line={t.parts.soFar(format.count(done), format.count(parts.length))} />
    </div>
  );
}
