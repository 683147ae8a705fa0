import { type ReactNode, useState } from "react";
import type { RunPart } from "../../api/types";
import { useI18n } from "../../i18n";
import { cellState, hasPanel, isNotable, rangesText } from "../../model/parts";
import { Button } from "../../ui/button";
import { Segments } from "../../ui/segments";
import { DEFAULT_VIEW, encodeView } from "../../url-state";
import { PartSign } from "./PartSign";
import styles from "./parts-list.module.css";
import { partReason, stageText, stateWord, stepText } from "./words";

interface Props {
  parts: readonly RunPart[];
  first: number | null;
  names: Record<"left" | "right", string>;
  /** What can be done about a part, at the end of its row. */
  action: (part: RunPart) => ReactNode;
}

/** From so many parts on, those that agree are left out at first. */
const MANY = 24;
/** So many rows at once: a page of thousands is slow to lay out and nobody reads it. */
const MOST = 60;

/** Every part in a row: its verdict, where it parts first, or why it has no such place. */
export function PartsList({ parts, first, names, action }: Props) {
  const { t, format } = useI18n();
  const words = t.parts;
  const notable = parts.filter(isNotable);
  const choice = notable.length > 0 && notable.length < parts.length;
  const [all, setAll] = useState(parts.length <= MANY);
  const wanted = choice && !all ? notable : parts;
  const [most, setMost] = useState(MOST);
  const shown = wanted.slice(0, most);
  const staged = parts.some((part) => stageText(part, t) !== "–");
  return (
    <section className={styles.section} aria-label={words.list}>
      <header className={styles.header}>
        <h2>{words.list}</h2>
        <span className={styles.count}>{choice ? null : words.count(parts.length, format.count(parts.length))}</span>
        {choice ? (
          <Segments
            className={styles.choice}
            label={words.show}
            value={all ? "all" : "notable"}
            options={[
              { value: "all", text: words.all(format.count(parts.length)) },
              { value: "notable", text: words.notable(format.count(notable.length)) },
            ]}
            onChange={(value) => setAll(value === "all")}
          />
        ) : null}
      </header>
      <div className={styles.columns} data-staged={staged} aria-hidden="true">
        <span>{words.columns.verdict}</span>
        {staged ? <span>{words.columns.stage}</span> : null}
        <span className={styles.number}>{words.columns.step}</span>
        <span className={styles.number}>{words.columns.ranks}</span>
        <span>{words.columns.where}</span>
      </div>
      <ul className={styles.list}>
        {shown.map((part) => (
          <li key={part.n} className={styles.item}>
            <Row part={part} first={part.n === first} staged={staged} names={names} />
            {part.state === "failed" ? <div className={styles.action}>{action(part)}</div> : null}
          </li>
        ))}
      </ul>
      {wanted.length > shown.length ? (
        <p className={styles.more}>
          <Button onClick={() => setMost(most + MOST)}>
            {words.more(format.count(Math.min(MOST, wanted.length - shown.length)), format.count(wanted.length - shown.length))}
          </Button>
        </p>
      ) : null}
    </section>
  );
}

function Row({ part, first, staged, names }: { part: RunPart; first: boolean; staged: boolean; names: Props["names"] }) {
  const { t, language } = useI18n();
  const { where, what } = partReason(part, names, t, language);
  const state = cellState({ part, rank: null });
  const ranks = rangesText(part.ranks);
  const step = part.step === null ? t.parts.noStep : t.parts.step(stepText(part, t));
  const paired = part.reason == null ? step : `${step} — ${part.reason.text[language]}`;
  const cells = (
    <>
      <span className={styles.verdict} data-verdict={state}>
        <PartSign state={state} first={first} />
        {stateWord(state, first ? t.parts.first : null, t)}
      </span>
      {staged ? <span className={styles.stage}>{stageText(part, t)}</span> : null}
      <span className={styles.number} title={paired}>
        <span className={styles.word}>{step}</span>
        <span className={styles.bare} aria-hidden="true">
          {stepText(part, t)}
        </span>
      </span>
      <span className={styles.number} title={ranks === "" ? undefined : t.parts.rank(ranks)}>
        <span className={styles.word}>{ranks === "" ? null : t.parts.rank(ranks)}</span>
        <span className={styles.bare} aria-hidden="true">
          {ranks === "" ? "–" : ranks}
        </span>
      </span>
      <span className={styles.reason} title={[where, what].filter(Boolean).join(" — ")}>
        {where === "" ? null : <b>{where}</b>}
        {where === "" || what === "" ? null : " — "}
        {what}
      </span>
    </>
  );
  // A link and not a button: it can be opened beside the overview, and Back leads here again.
  return !hasPanel(part) ? (
    <div className={styles.row} data-staged={staged}>
      {cells}
    </div>
  ) : (
    <a className={styles.row} data-staged={staged} data-first={first} href={`#${encodeView({ ...DEFAULT_VIEW, part: part.n })}`}>
      {cells}
    </a>
  );
}
