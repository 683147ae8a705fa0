import styles from "./glyph.module.css";

/** The signs of states and verdicts: each differs in shape, colour only repeats it. 16 × 16, the words stand beside them. */
export type GlyphName =
  | "diverged"
  | "consistent"
  | "identical"
  | "not_comparable"
  | "running"
  | "queued"
  | "failed"
  | "cancelled"
  | "interrupted";

export function Glyph({ name, size = 16 }: { name: GlyphName; size?: number }) {
  return (
    <svg className={`${styles.glyph} ${styles[name]}`} width={size} height={size} viewBox="0 0 16 16" fill="none" aria-hidden="true">
      {SHAPES[name]}
    </svg>
  );
}

const SHAPES: Record<GlyphName, React.ReactNode> = {
  diverged: <path d="M8 2.2 14.3 13.4H1.7Z" fill="currentcolor" />,
  consistent: <path d="m2.4 8.6 3.7 3.7 7.6-8.6" stroke="currentcolor" strokeWidth="1.9" />,
  identical: <path d="M2.6 5.8h10.8M2.6 10.2h10.8" stroke="currentcolor" strokeWidth="2" />,
  not_comparable: (
    <>
      <circle cx="8" cy="8" r="5.2" stroke="currentcolor" strokeWidth="1.4" />
      <path d="m4.3 11.7 7.4-7.4" stroke="currentcolor" strokeWidth="1.4" />
    </>
  ),
  running: (
    <>
      <circle cx="8" cy="8" r="5.2" stroke="var(--line2)" strokeWidth="2" />
      <path className={styles.turning} d="M8 2.8a5.2 5.2 0 1 1-5.2 5.2" stroke="currentcolor" strokeWidth="2" />
    </>
  ),
  queued: (
    <>
      <circle cx="8" cy="8" r="5.2" stroke="currentcolor" strokeWidth="1.4" />
      <path d="M8 5v3.2l2.1 1.3" stroke="currentcolor" strokeWidth="1.4" strokeLinecap="round" />
    </>
  ),
  failed: <path d="m3.4 3.4 9.2 9.2m0-9.2-9.2 9.2" stroke="currentcolor" strokeWidth="1.9" />,
  cancelled: (
    <>
      <circle cx="8" cy="8" r="5.2" stroke="currentcolor" strokeWidth="1.4" />
      <path d="M5.4 8h5.2" stroke="currentcolor" strokeWidth="1.6" />
    </>
  ),
  interrupted: <path d="M8.9 1.8 4 8.9h3.2l-.9 5.3L12 6.8H8.5Z" stroke="currentcolor" strokeWidth="1.3" strokeLinejoin="round" />,
};
