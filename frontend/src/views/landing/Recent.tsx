import { Search, X } from "lucide-react";
import { useDeferredValue, useEffect, useId, useState } from "react";
import { Link } from "wouter";
import { asRequestError } from "../../api/problem";
import { useComparisons } from "../../api/queries";
import type { ComparisonRow } from "../../api/types";
import { type I18n, type Messages, useI18n } from "../../i18n";
import { problemSentence } from "../../i18n/errors";
import { share } from "../../i18n/format";
import { Button } from "../../ui/button";
import { Glyph, type GlyphName } from "../../ui/glyph";
import { comparisonName, splitHeadline } from "../../ui/headline";
import { IconButton } from "../../ui/icon-button";
import { SideMark } from "../../ui/side";
import { useNow } from "../../ui/use-now";
import styles from "./recent.module.css";

/** What was compared here before, newest first; follows by itself while something runs. */
export function Recent() {
  const { t, format } = useI18n();
  const [typed, setTyped] = useState("");
  const search = useSettled(typed.trim());
  const list = useComparisons(search);
  const title = useId();
  const rows = list.data?.pages.flatMap(({ results }) => results) ?? [];
  const forbidden = list.error !== null && asRequestError(list.error).status === 403;
  return (
    <section className={styles.recent} aria-labelledby={title}>
      <header className={styles.header}>
        <h2 id={title}>{t.recent.title}</h2>
        {forbidden ? null : (
          <div className={styles.search}>
            <Search size={14} aria-hidden="true" />
            <input
              type="search"
              aria-label={t.recent.search}
              placeholder={t.recent.search}
              value={typed}
              onChange={(event) => setTyped(event.target.value)}
            />
            {typed === "" ? null : (
              <IconButton label={t.recent.clear} className={styles.clear} onClick={() => setTyped("")}>
                <X size={13} />
              </IconButton>
            )}
          </div>
        )}
      </header>
      <ListBody rows={rows} search={search} list={list} forbidden={forbidden} />
      {rows.length > 0 ? (
        <p className={styles.foot}>
          {t.recent.local}{" "}
          {list.hasNextPage ? (
            <Button look="link" aria-disabled={list.isFetchingNextPage} onClick={() => void list.fetchNextPage()}>
              {t.recent.more}
            </Button>
          ) : (
            t.recent.count(rows.length, format.count(rows.length))
          )}
        </p>
      ) : null}
    </section>
  );
}

interface BodyProps {
  rows: readonly ComparisonRow[];
  search: string;
  list: ReturnType<typeof useComparisons>;
  forbidden: boolean;
}

function ListBody({ rows, search, list, forbidden }: BodyProps) {
  const { t } = useI18n();
  const now = useNow(20_000);
  if (forbidden) return <p className={styles.message}>{t.recent.forbidden}</p>;
  if (rows.length > 0) {
    return (
      <ul className={styles.list}>
        {rows.map((row) => (
          <Row key={row.id} row={row} now={now} />
        ))}
      </ul>
    );
  }
  if (list.isPending) {
    return (
      <div className={styles.list} role="status" aria-label={t.recent.loading}>
        {[0, 1, 2].map((line) => (
          <div key={line} className={`${styles.row} ${styles.blank}`} aria-hidden="true" />
        ))}
      </div>
    );
  }
  if (list.error !== null) {
    return (
      <div className={styles.message} role="alert">
        {t.recent.failed}{" "}
        <Button look="link" onClick={() => void list.refetch()}>
          {t.common.retry}
        </Button>
      </div>
    );
  }
  return <p className={styles.message}>{search === "" ? t.recent.empty : t.recent.nothing(search)}</p>;
}

function Row({ row, now }: { row: ComparisonRow; now: Date }) {
  const { t, language, format } = useI18n();
  const created = new Date(row.created_at);
  const name = comparisonName(row, language);
  const { sentence, glyph } = statusOf(row, { t, language, format });
  return (
    <li>
      <Link href={row.url} className={styles.row}>
        <Glyph name={glyph} size={14} />
        <span className={styles.name} title={name}>
          {name}
        </span>
        <span className={styles.sentence} title={sentence.join("")}>
          <strong>{sentence[0]}</strong>
          {sentence[1]}
        </span>
        <span className={styles.runs}>
          <span className={styles.run}>
            <SideMark side="left" />
            <span className="visually-hidden">{t.common.left}</span>
            <span title={row.left.name}>{row.left.name}</span>
          </span>
          <span className={styles.run}>
            <SideMark side="right" />
            <span className="visually-hidden">{t.common.right}</span>
            <span title={row.right.name}>{row.right.name}</span>
          </span>
        </span>
        <time className={styles.when} dateTime={row.created_at} title={format.moment(created)}>
          {format.ago(created, now)}
        </time>
      </Link>
    </li>
  );
}

/** The verdict in its own words where there is one, else how far the comparison is; the first half of the sentence stands out. */
function statusOf(row: ComparisonRow, { t, language }: I18n): { sentence: readonly [string, string]; glyph: GlyphName } {
  if (row.verdict !== null && row.headline !== null) return { sentence: splitHeadline(row.headline[language]), glyph: row.verdict };
  switch (row.state) {
    case "queued":
      return { sentence: ["", t.state.queued], glyph: "queued" };
    case "running":
    case "done":
      return { sentence: ["", runningSentence(row, t)], glyph: "running" };
    case "failed":
      return { sentence: [t.state.failed, row.error === null ? "" : `: ${problemSentence(row.error, language)}`], glyph: "failed" };
    default:
      return { sentence: ["", t.state[row.state]], glyph: row.state };
  }
}

function runningSentence({ progress }: ComparisonRow, t: Messages): string {
  const { stage, fraction } = progress;
  const name = stage === undefined ? undefined : t.state.stages[stage];
  return name === undefined || fraction === undefined ? t.state.runningPlain : t.state.running(name, share(fraction, 1));
}

/** What was typed, a moment after the last key: a question to the server a word and not a letter. */
function useSettled(text: string): string {
  const [settled, setSettled] = useState(text);
  useEffect(() => {
    const timer = window.setTimeout(() => setSettled(text), 200);
    return () => window.clearTimeout(timer);
  }, [text]);
  return useDeferredValue(settled);
}
