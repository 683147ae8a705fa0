import { type Side, SideMark } from "../../ui/side";
import styles from "./side-heading.module.css";

/** The head of a column that holds one side's numbers: its sign and what it is called. */
export function SideHeading({ side, name }: { side: Side; name: string }) {
  return (
    <th scope="col">
      <span className={styles.side}>
        <SideMark side={side} /> {name}
      </span>
    </th>
  );
}
