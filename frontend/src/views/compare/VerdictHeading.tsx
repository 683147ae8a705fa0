import type { ReactNode } from "react";
import type { VerdictWord } from "../../api/types";
import { useI18n } from "../../i18n";
import { Glyph } from "../../ui/glyph";
import styles from "./verdict.module.css";

interface Props {
  verdict: VerdictWord;
  /** Where: set bold. */
  where: string;
  /** What and how much; "" = nothing. */
  what: string;
  actions: ReactNode;
  /** What stands below the sentence. */
  children: ReactNode;
  /** More room or less for it, where a page needs that. */
  belowClass?: string | undefined;
  /** What a reader must know besides, at the end. */
  findings?: ReactNode;
}

/** The answer of a comparison, of one part or of all: one sentence with its sign, what can be done with it, and what it rests on. */
export function VerdictHeading({ verdict, where, what, actions, children, belowClass, findings }: Props) {
  const { t } = useI18n();
  return (
    <section className={styles.block} aria-label={t.compare.verdict.label}>
      <div className={styles.first}>
        <span className={styles.glyph}>
          <Glyph name={verdict} size={20} />
        </span>
        <h1 className={styles.sentence} data-testid="verdict-sentence">
          <b>{where}</b>
          {what === "" ? null : (
            <>
              <span className={styles.dash}> — </span>
              <span className={styles.what}>{what}</span>
            </>
          )}
        </h1>
        <div className={styles.actions}>{actions}</div>
      </div>
      <div className={[styles.below, belowClass].filter(Boolean).join(" ")}>{children}</div>
      {findings}
    </section>
  );
}
