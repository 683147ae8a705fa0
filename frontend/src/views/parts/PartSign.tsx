import type { CellState } from "../../model/parts";
import { Glyph } from "../../ui/glyph";
import styles from "./part-sign.module.css";

/** The sign of a part. Solid ▲ is the first divergence, hollow △ one that comes after it; hatched is on one side only; a dot is within noise. */
export function PartSign({ state, first, size = 14 }: { state: CellState; first: boolean; size?: number }) {
  if (state === "left_only" || state === "right_only") return <span className={styles.hatch} aria-hidden="true" />;
  if (state === "consistent") {
    return (
      <svg className={styles.quiet} width={size} height={size} viewBox="0 0 16 16" aria-hidden="true">
        <circle cx="8" cy="8" r="1.9" fill="currentcolor" />
      </svg>
    );
  }
  if (state !== "diverged" || first) return <Glyph name={state} size={size} />;
  return (
    <svg className={styles.hollow} width={size} height={size} viewBox="0 0 16 16" fill="none" aria-hidden="true">
      <path d="M8 3.2 13.6 13H2.4Z" stroke="currentcolor" strokeWidth="1.6" strokeLinejoin="round" />
    </svg>
  );
}
