import type { ReactNode } from "react";
import type { RunVerdict } from "../../api/run-verdict";
import { useI18n } from "../../i18n";
import { firstOrigin, firstPart } from "../../model/parts";
import { placeName } from "../compare/words";
import styles from "./chain.module.css";
import { RunFindings } from "./RunFindings";
import { divergedRanks, placeText } from "./run-words";
import { divergenceWhat, partReason } from "./words";

interface Props {
  verdict: RunVerdict;
  names: Record<"left" | "right", string>;
  onTable: (n: number) => void;
  onPart: (n: number) => void;
}

/** What a reader follows: settings, the first table that differs, the stage that made it, the module inside, the likely cause. */
export function Chain({ verdict, names, onTable, onPart }: Props) {
  const { t, language, format } = useI18n();
  const words = t.loop.chain;
  const { first } = verdict;
  if (first === null) return null;
  const key = verdict.key_data.find((data) => data.key === first.key_data) ?? null;
  const part = firstPart(verdict);
  const origin = firstOrigin(verdict);
  const matter = verdict.configurations.filter(({ matters }) => matters);
  const steps: { id: string; line: ReactNode; below: string }[] = [];
  if (matter.length > 0) {
    const below = format.list(matter.slice(0, 3).map(({ path }) => path)) + (matter.length > 3 ? " …" : "");
    steps.push({
      id: "settings",
      line: (
        <button type="button" className={styles.link} onClick={showSettings}>
          <b>{words.settings(matter.length, format.count(matter.length))}</b>
        </button>
      ),
      below,
    });
  }
  if (key !== null) {
    steps.push({
      id: "table",
      line: (
        <>
          <button type="button" className={styles.link} onClick={() => onTable(key.n)}>
            <b>{key.key}</b>
          </button>{" "}
          {words.table(key.key)}
        </>
      ),
      below: placeText(key.first ?? first, t),
    });
  }
  if (first.stage !== null) {
    const diverged = part === null ? null : divergedRanks(part);
    const ranks = part === null || diverged === null ? "" : words.ranks(format.count(diverged), format.count(part.by_rank?.length ?? 0));
    const stage = part === null ? <b>{first.stage}</b> : <PartLink name={first.stage} onOpen={() => onPart(part.n)} />;
    steps.push({
      id: "stage",
      line:
        key === null ? (
          <>
            {stage} {words.stageFirst}
          </>
        ) : (
          <>
            {words.madeBy} {stage}
            {verdict.first_part === null ? words.whichAgrees : part?.state === "failed" ? words.whichFailed : null}
          </>
        ),
      below: [placeText({ step: first.step, rank: first.rank }, t), ranks].filter(Boolean).join(" · "),
    });
  } else if (key !== null) steps.push({ id: "stage", line: words.unknownStage, below: "" });
  if (first.module !== null && part !== null) {
    steps.push({
      id: "module",
      line: (
        <>
          {steps.length === 0 ? null : `${words.inside} `}
          <PartLink name={placeName(first.module)} onOpen={() => onPart(part.n)} /> {words.partsFirst}
        </>
      ),
      below: origin === null ? partReason(part, names, t, language).what : divergenceWhat(origin, t),
    });
  }
  const title = key !== null ? words.title : first.stage === null ? words.titleModule : words.titleStages;
  const causes = origin?.causes ?? [];
  return (
    <section className={styles.section} aria-label={title}>
      <header className={styles.header}>
        <h2>{title}</h2>
      </header>
      <ol className={styles.chain}>
        {steps.map(({ id, line, below }, at) => (
          <li key={id} className={styles.step}>
            <span className={styles.number} aria-hidden="true">
              {at + 1}
            </span>
            <div>
              <p className={styles.line}>{line}</p>
              {below === "" ? null : <p className={styles.below}>{below}</p>}
            </div>
          </li>
        ))}
      </ol>
      {causes.length === 0 ? null : (
        <p className={styles.cause}>
          {words.cause}{" "}
          {causes
            .slice(0, 2)
            .map(({ text, score }) => `${text[language]}${score > 0 ? ` ${words.score(score.toFixed(2))}` : ""}`)
            .join(words.or)}
        </p>
      )}
      <RunFindings verdict={verdict} />
    </section>
  );
}

function PartLink({ name, onOpen }: { name: string; onOpen: () => void }) {
  return (
    <button type="button" className={styles.link} onClick={onOpen}>
      <b>{name}</b>
    </button>
  );
}

function showSettings(): void {
  const section = document.getElementById("settings");
  section?.scrollIntoView({ block: "nearest" });
  section?.focus({ preventScroll: true });
}
