import { useId } from "react";
import type { LeftAside } from "../../api/types";
import { useI18n } from "../../i18n";
import styles from "./run.module.css";

const MOST_FILES = 200;

/** What was in the upload and not read, by reason. */
export function Aside({ aside }: { aside: readonly LeftAside[] }) {
  const { t, format } = useI18n();
  const title = useId();
  const byReason = new Map<string, string[]>();
  for (const { path, reason } of aside) {
    const paths = byReason.get(reason);
    if (paths === undefined) byReason.set(reason, [path]);
    else paths.push(path);
  }
  return (
    <section className={styles.section} aria-labelledby={title}>
      <h2 id={title}>{t.run.asideTitle}</h2>
      {aside.length === 0 ? <p className={styles.quiet}>{t.run.asideNone}</p> : null}
      {[...byReason].map(([reason, paths]) => (
        <details key={reason} className={styles.aside} open={paths.length <= 5}>
          <summary>
            {t.run.asideReason(t.card.asideFiles(paths.length, format.count(paths.length)), t.card.asideReasons[reason] ?? reason)}
          </summary>
          <ul>
            {paths.slice(0, MOST_FILES).map((path) => (
              <li key={path}>
                <code>{path}</code>
              </li>
            ))}
            {paths.length > MOST_FILES ? <li>{t.run.asideMore(format.count(paths.length - MOST_FILES))}</li> : null}
          </ul>
        </details>
      ))}
    </section>
  );
}
