import { Link } from "wouter";
import { useI18n } from "../../i18n";
import { errorSentence } from "../../i18n/errors";
import { Notice } from "../../ui/notice";
import type { Stage } from "./stage";
import styles from "./unavailable.module.css";

/** No comparison to show: not yet, not any more, not for this reader. */
export function Unavailable({ stage, error }: { stage: Stage; error: Error | null }) {
  const { t, language } = useI18n();
  const home = <Link href="/">{t.common.back}</Link>;
  switch (stage) {
    case "loading":
      return <Skeleton />;
    case "unreachable":
      return (
        <Notice glyph="queued" title={t.comparison.unreachableTitle} role="status">
          <p>{t.comparison.unreachableText}</p>
        </Notice>
      );
    case "forbidden":
      return (
        <Notice glyph="failed" title={t.comparison.forbiddenTitle} role="alert" actions={home}>
          <p>{errorSentence(error, language)}</p>
        </Notice>
      );
    case "missing":
      return (
        <Notice glyph="not_comparable" title={t.comparison.notFoundTitle} role="alert" actions={home}>
          <p>{t.comparison.notFoundText}</p>
        </Notice>
      );
    default:
      return (
        <Notice glyph="failed" title={t.comparison.loadFailedTitle} role="alert" actions={home}>
          <p>{errorSentence(error, language)}</p>
        </Notice>
      );
  }
}

/** The frame of the page without its contents: what comes takes the same places. */
function Skeleton() {
  const { t } = useI18n();
  return (
    <div className={styles.skeleton} role="status" aria-label={t.comparison.loading}>
      <div className={styles.verdict} aria-hidden="true" />
      <div className={styles.body} aria-hidden="true" />
    </div>
  );
}
