import type { ReactNode } from "react";
import { useI18n } from "../../i18n";
import { Glyph, type GlyphName } from "../../ui/glyph";
import styles from "./verdict.module.css";

interface Props {
  /** The sign before the sentence: of the verdict, or of what is on its way to one. */
  sign: GlyphName;
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
  /** What the section is called and found by where it says no verdict. */
  label?: string | undefined;
  testId?: string;
}

/** The answer of a comparison, of one part or of all: one sentence with its sign, what can be done with it, and what it rests on. */
export function VerdictHeading({ sign, where, what, actions, children, belowClass, findings, label, testId = "verdict-sentence" }: Props) {
  const { t } = useI18n();
  return (
    <section className={styles.block} aria-label={label ?? t.compare.verdict.label}>
      <div className={styles.first}>
        <span className={styles.glyph}>
          <Glyph name={sign} size={20} />
        </span>
        <h1 className={styles.sentence} data-testid={testId}>
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
