import type { ReactNode } from "react";
import type { RunVerdict } from "../../api/types";
import { useI18n } from "../../i18n";
import { firstOrigin } from "../../model/parts";
import { Ticks } from "../compare/VerdictBlock";
import { VerdictHeading } from "../compare/VerdictHeading";
import styles from "../compare/verdict.module.css";
import { RunPremises } from "./RunPremises";
import own from "./run-verdict.module.css";
import { countsLine, runSentence } from "./words";

interface Props {
  verdict: RunVerdict;
  /** What can be done about parts that failed, beside their count. */
  retry: ReactNode;
  actions: ReactNode;
}

/** The answer for the whole run, in the frame that the answer for one part has. */
export function RunVerdictBlock({ verdict, retry, actions }: Props) {
  const { language, t, format } = useI18n();
  const words = t.compare.verdict;
  const { where, what } = runSentence(verdict, language, t);
  const origin = firstOrigin(verdict);
  return (
    <VerdictHeading sign={verdict.verdict} where={where} what={what} actions={actions} belowClass={own.below}>
      <p className={`${styles.second} ${own.second}`}>
        {verdict.parts.length === 0 ? null : <span>{countsLine(verdict.parts, t, format.count)}</span>}
        {retry}
        {origin === null ? null : (
          <span className={styles.confidence}>
            {words.confidence} <b>{words.confidenceWords[origin.confidence]}</b>
            <Ticks level={origin.confidence} />
          </span>
        )}
      </p>
      <RunPremises verdict={verdict} />
    </VerdictHeading>
  );
}
