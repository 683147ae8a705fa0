import { useId } from "react";
import { Link } from "wouter";
import { asRequestError } from "../../api/problem";
import { useComparisonsOfRun } from "../../api/queries";
import { useI18n } from "../../i18n";
import { errorSentence } from "../../i18n/errors";
import { Glyph } from "../../ui/glyph";
import { comparisonName } from "../../ui/headline";
import styles from "./run.module.css";

/** The comparisons that a run is a side of. Elsewhere than on the server's own machine the list is closed, and that is said. */
export function UsedBy({ run }: { run: string }) {
  const { t, language } = useI18n();
  const title = useId();
  const { data, error } = useComparisonsOfRun(run);
  const rows = data?.results ?? [];
  return (
    <section className={styles.section} aria-labelledby={title}>
      <h2 id={title}>{t.run.comparisons}</h2>
      {error !== null ? (
        <p className={styles.quiet}>{asRequestError(error).status === 403 ? t.recent.forbidden : errorSentence(error, language)}</p>
      ) : data !== undefined && rows.length === 0 ? (
        <p className={styles.quiet}>{t.run.comparisonsNone}</p>
      ) : (
        <ul className={styles.comparisons}>
          {rows.map((row) => (
            <li key={row.id}>
              <Link href={row.url}>
                <Glyph name={row.verdict ?? (row.state === "done" ? "running" : row.state)} size={14} />
                <span>{comparisonName(row, language)}</span>
                {row.headline === null ? null : <span className={styles.headline}>{row.headline[language]}</span>}
              </Link>
            </li>
          ))}
          {data?.next ? <li className={styles.more}>…</li> : null}
        </ul>
      )}
    </section>
  );
}
