import type { ReactNode } from "react";
import type { RunVerdict } from "../../api/types";
import { useI18n } from "../../i18n";
import { firstPart } from "../../model/parts";
import { Glyph } from "../../ui/glyph";
import { Ticks } from "../compare/VerdictBlock";
import styles from "../compare/verdict.module.css";
import { RunPremises } from "./RunPremises";
import own from "./run-verdict.module.css";
import { countsLine, runSentence } from "./words";

/** The answer for the whole run, in the frame that the answer for one part has. */
export function RunVerdictBlock({ verdict, actions }: { verdict: RunVerdict; actions: ReactNode }) {
  const { language, t, format } = useI18n();
  const words = t.compare.verdict;
  const { where, what } = runSentence(verdict, language, t);
  const origin = firstPart(verdict)?.first_divergence ?? null;
  return (
    <section className={styles.block} aria-label={words.label}>
      <div className={styles.first}>
        <span className={styles.glyph}>
          <Glyph name={verdict.verdict} size={20} />
        </span>
        <h1 className={styles.sentence} data-testid="verdict-sentence">
          <b>{where}</b>
          {what === "" ? null : (
            <>
              <span className={styles.dash}> — </span>
              <span className={styles.what}>{what}</span>
            </>
          )}
        </h1>
        <div className={styles.actions}>{actions}</div>
      </div>
      <div className={`${styles.below} ${own.below}`}>
        <p className={`${styles.second} ${own.second}`}>
          <span>{countsLine(verdict.parts, t, format.count)}</span>
          {origin === null ? null : (
            <span className={styles.confidence}>
              {words.confidence} <b>{words.confidenceWords[origin.confidence]}</b>
              <Ticks level={origin.confidence} />
            </span>
          )}
        </p>
        <RunPremises verdict={verdict} />
      </div>
    </section>
  );
}
