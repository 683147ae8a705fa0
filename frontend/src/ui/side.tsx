import styles from "./side.module.css";

export type Side = "left" | "right";

/** ■ left, usually train; ● right, usually inference. The shape says what the colour says. */
export function SideMark({ side }: { side: Side }) {
  return <span className={`${styles.mark} ${styles[side]}`} aria-hidden="true" />;
}
