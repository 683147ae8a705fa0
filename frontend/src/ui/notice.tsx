import type { ReactNode } from "react";
import { Glyph, type GlyphName } from "./glyph";
import styles from "./notice.module.css";

interface Props {
  glyph?: GlyphName;
  title: string;
  children?: ReactNode;
  actions?: ReactNode;
  /** `alert` where it takes the place of what the reader waited for. */
  role?: "alert" | "status";
}

/** A page that has nothing else to show: failed, forbidden, not found, waiting. One title, one sentence, what to do. */
export function Notice({ glyph, title, children, actions, role }: Props) {
  return (
    <section className={styles.notice} role={role}>
      <h1 className={styles.title}>
        {glyph === undefined ? null : <Glyph name={glyph} size={20} />}
        {title}
      </h1>
      {children === undefined ? null : <div className={styles.text}>{children}</div>}
      {actions === undefined ? null : <div className={styles.actions}>{actions}</div>}
    </section>
  );
}
