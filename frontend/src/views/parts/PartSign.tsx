import type { RunPart } from "../../api/types";
import { Glyph } from "../../ui/glyph";
import styles from "./part-sign.module.css";

/** The sign of a part's verdict. Solid ▲ is the first divergence, hollow △ one that comes after it; hatched is on one side only. */
export function PartSign({ verdict, first, size = 14 }: { verdict: RunPart["verdict"]; first: boolean; size?: number }) {
  if (verdict === "left_only" || verdict === "right_only") return <span className={styles.hatch} aria-hidden="true" />;
  if (verdict !== "diverged" || first) return <Glyph name={verdict} size={size} />;
  return (
    <svg className={styles.hollow} width={size} height={size} viewBox="0 0 16 16" fill="none" aria-hidden="true">
      <path d="M8 3.2 13.6 13H2.4Z" stroke="currentcolor" strokeWidth="1.6" strokeLinejoin="round" />
    </svg>
  );
}
