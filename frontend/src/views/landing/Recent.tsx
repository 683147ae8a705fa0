import { Search, X } from "lucide-react";
import { useDeferredValue, useEffect, useId, useState } from "react";
import { Link } from "wouter";
import { asRequestError } from "../../api/problem";
import { useComparisons } from "../../api/queries";
import type { ComparisonRow } from "../../api/types";
import { useI18n } from "../../i18n";
import { Button } from "../../ui/button";
import { Glyph, type GlyphName } from "../../ui/glyph";
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
  const { sentence, glyph } = statusOf(row, t, language);
  return (
    <li>
      <Link href={row.url} className={styles.row}>
        <Glyph name={glyph} size={14} />
        <span className={styles.name}>{row.name}</span>
        <span className={styles.sentence}>{sentence}</span>
        <span className={styles.runs}>
          <span className={styles.run}>
            <SideMark side="left" />
            <span className="visually-hidden">{t.common.train}</span>
            <span>{row.left}</span>
          </span>
          <span className={styles.run}>
            <SideMark side="right" />
            <span className="visually-hidden">{t.common.infer}</span>
            <span>{row.right}</span>
          </span>
        </span>
        <time className={styles.when} dateTime={row.created_at} title={format.moment(created)}>
          {format.ago(created, now)}
        </time>
      </Link>
    </li>
  );
}

/** The verdict in its own words where there is one, else how far the comparison is. */
function statusOf(row: ComparisonRow, t: ReturnType<typeof useI18n>["t"], language: "en" | "zh"): { sentence: string; glyph: GlyphName } {
  const { verdict, headline } = row.summary;
  if (verdict !== "" && row.state !== "failed") return { sentence: headline[language], glyph: verdict };
  switch (row.state) {
    case "queued":
      return { sentence: t.state.queued, glyph: "queued" };
    case "running":
    case "done":
      return { sentence: t.state.runningPlain, glyph: "running" };
    default:
      return { sentence: t.state[row.state], glyph: row.state };
  }
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
