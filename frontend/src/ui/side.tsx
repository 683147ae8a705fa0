import type { Role } from "../api/types";
import styles from "./side.module.css";

/** ■ train, ● inference: the shape says what the colour says. */
export function SideMark({ role }: { role: Role }) {
  return <span className={`${styles.mark} ${role === "train" ? styles.train : styles.infer}`} aria-hidden="true" />;
}
