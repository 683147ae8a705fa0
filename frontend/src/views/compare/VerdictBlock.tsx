import { type ReactNode, useId, useState } from "react";
import type { PartVerdict, Premise } from "../../api/types";
import { useI18n } from "../../i18n";
import { Button } from "../../ui/button";
import { FindingsList } from "./FindingsList";
import { PremiseChips } from "./PremiseChips";
import { VerdictHeading } from "./VerdictHeading";
import styles from "./verdict.module.css";
import { confidenceFact, inheritedPairs, placeName, premiseText, restsOn, verdictSentence } from "./words";

interface Props {
  verdict: PartVerdict;
  actions: ReactNode;
  /** What the configurations of the two runs say, where that has no page of its own. */
  settings?: ReactNode;
}

/**
 * The answer: one sentence (bold = where, regular = what and the number), the confidence behind it, what it rests on, and what a reader must
 * know besides. Notes wait behind their number: most readers have no use for them.
 */
export function VerdictBlock({ verdict, actions, settings }: Props) {
  const { language, t, format } = useI18n();
  const words = t.compare;
  const { where, what, rest } = verdictSentence(verdict, language, words);
  const [noted, setNoted] = useState(false);
  const notesId = useId();
  const warnings = verdict.findings.filter(({ severity }) => severity !== "info");
  // Without an origin the detail has room for them, below what was checked.
  const quiet = verdict.verdict === "consistent" || verdict.verdict === "identical";
  const notes = quiet ? [] : verdict.findings.filter(({ severity }) => severity === "info");
  return (
    <VerdictHeading
      sign={verdict.verdict}
      where={where}
      what={what}
      actions={actions}
      findings={
        <>
          <FindingsList findings={warnings} label={words.findings.warnings} />
          <div id={notesId}>{noted ? <FindingsList findings={notes} label={words.findings.notes} /> : null}</div>
        </>
      }
    >
      <div className={styles.second}>
        <SecondLine verdict={verdict} rest={rest} />
        {notes.length === 0 ? null : (
          <Button look="link" className={styles.notes} aria-expanded={noted} aria-controls={notesId} onClick={() => setNoted(!noted)}>
            {words.findings.count(notes.length, format.count(notes.length))}
          </Button>
        )}
        {settings}
      </div>
      <Premises premises={verdict.premises} />
    </VerdictHeading>
  );
}

function SecondLine({ verdict, rest }: { verdict: PartVerdict; rest: string }) {
  const { language, t, format } = useI18n();
  const words = t.compare;
  const origin = verdict.first_divergence;
  if (origin !== null) {
    const inherited = inheritedPairs(verdict);
    const fact = confidenceFact(verdict, language, words);
    return (
      <>
        <span>{inherited > 0 ? words.verdict.inherit(inherited, format.count(inherited)) : words.verdict.noInherit}</span>
        <span className={styles.confidence}>
          {words.verdict.confidence} <b>{words.verdict.confidenceWords[origin.confidence]}</b>
          <Ticks level={origin.confidence} />
        </span>
        {fact === null ? null : (
          <span className={styles.fact} title={fact}>
            {fact}
          </span>
        )}
      </>
    );
  }
  const first = verdict.first_difference;
  return (
    <>
      {verdict.verdict === "not_comparable" ? (
        <span>{words.verdict.notComparableSecond}</span>
      ) : (
        <>
          <span>{rest === "" ? restsOn(verdict, words) : rest}</span>
          {first === null ? null : (
            <span className={styles.fact}>{words.verdict.firstDifference(placeName(first.module), words.grades[first.grade])}</span>
          )}
        </>
      )}
    </>
  );
}

const LEVELS = { low: 1, medium: 2, high: 3 } as const;

/** Three ticks beside the word: the same said twice, never by the ticks alone. */
export function Ticks({ level }: { level: keyof typeof LEVELS }) {
  return (
    <svg className={styles.ticks} width="17" height="10" viewBox="0 0 17 10" aria-hidden="true">
      {[0, 1, 2].map((tick) => (
        <rect
          key={tick}
          x={tick * 6 + 0.5}
          y="0.5"
          width="4"
          height="9"
          fill={tick < LEVELS[level] ? "currentcolor" : "none"}
          stroke="currentcolor"
          strokeWidth="1"
        />
      ))}
    </svg>
  );
}

function Premises({ premises }: { premises: readonly Premise[] }) {
  const { t } = useI18n();
  const words = t.compare.premises;
  if (premises.length === 0) return null;
  const holding = premises.filter(({ state }) => state === "ok").length;
  const notable = premises.length - holding;
  return (
    <PremiseChips
      label={words.label}
      summary={notable > 0 ? words.others(holding, String(holding)) : `${words.label} ${holding}/${premises.length}`}
      chips={premises.map((premise) => ({
        code: premise.code,
        text: premiseText(premise, t.compare),
        state: premise.state,
        word: words.states[premise.state],
        title: `${words.names[premise.code]}: ${words.states[premise.state]}`,
      }))}
    />
  );
}
