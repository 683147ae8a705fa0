import type { ReactNode } from "react";
import type { Inventory } from "../api/types";
import { useI18n } from "../i18n";
import { problemSentence } from "../i18n/errors";
import { CopyButton } from "./copy-button";
import styles from "./facts.module.css";
import { Glyph } from "./glyph";

/** Lines of a name and what it is; a `dl` around them. */
export function Fact({ name, children }: { name: string; children: ReactNode }) {
  return (
    <div className={styles.fact}>
      <dt>{name}</dt>
      <dd>{children}</dd>
    </div>
  );
}

/** Which of the files beside dump.json are there, and what it means that one is not. */
export function Structure({ missing }: { missing: readonly string[] }) {
  const { t, format } = useI18n();
  const found = ["construct.json", "stack.json"].filter((name) => !missing.includes(name));
  const parts = found.length > 0 ? [t.card.found(format.list(found))] : [];
  return [...parts, ...missing.map((name) => t.card.missing[name] ?? t.card.missingOther(name))].join(t.common.semicolon);
}

export function Digest({ digest }: { digest: string }) {
  const { t } = useI18n();
  if (digest === "") return null;
  return (
    <Fact name={t.card.digest}>
      <span className={styles.digest}>
        <code title={digest}>{`${digest.slice(0, 8)}…${digest.slice(-4)}`}</code>
        <CopyButton text={digest} label={t.card.copyDigest} className={styles.copy} />
      </span>
    </Fact>
  );
}

const MOST_UNREADABLE = 20;

/** Dumps that are there and could not be read, while others of the run could. */
export function Unreadable({ dumps }: { dumps: Inventory["unreadable"] }) {
  const { t, language, format } = useI18n();
  if (dumps === undefined || dumps.length === 0) return null;
  const more = dumps.length - MOST_UNREADABLE;
  return (
    <Fact name={t.card.unreadable}>
      <ul className={styles.notes}>
        {dumps.slice(0, MOST_UNREADABLE).map(({ place, error }) => (
          <li key={place}>
            <Glyph name="failed" /> {problemSentence(error, language)}
          </li>
        ))}
        {more > 0 ? <li>{t.card.moreUnreadable(more, format.count(more))}</li> : null}
      </ul>
    </Fact>
  );
}

/** What was read otherwise than it stands in the files. */
export function Noted({ notes }: { notes: Inventory["notes"] }) {
  const { t, language } = useI18n();
  if (notes === undefined || notes.length === 0) return null;
  return (
    <Fact name={t.card.noted}>
      <ul className={styles.notes}>
        {notes.map(({ code, place, record, text }) => (
          <li key={`${code} ${place} ${record} ${text.en}`}>{text[language]}</li>
        ))}
      </ul>
    </Fact>
  );
}
