import { useId } from "react";
import type { InventoryDump } from "../../api/types";
import { useI18n } from "../../i18n";
import styles from "./run.module.css";

/** More rows than a reader looks through; a run of that many says the rest in a line. */
const MOST_ROWS = 500;

/** Every dump that was found: where, which stage, step and rank, and how much is in it. */
export function Dumps({ dumps }: { dumps: readonly InventoryDump[] }) {
  const { t, format } = useI18n();
  const title = useId();
  const words = t.run;
  const stages = dumps.some(({ stage }) => stage !== null);
  return (
    <div className={styles.section}>
      <h2 id={title}>{words.dumps}</h2>
      {/* biome-ignore lint/a11y/noNoninteractiveTabindex: what scrolls must be reachable by keys */}
      <section className={styles.scroll} tabIndex={0} aria-labelledby={title}>
        <table className={styles.table}>
          <thead>
            <tr>
              <th scope="col">{words.place}</th>
              {stages ? <th scope="col">{words.stage}</th> : null}
              <th scope="col">{words.step}</th>
              <th scope="col">{words.rank}</th>
              <th scope="col">{words.records}</th>
              <th scope="col">{words.values}</th>
              <th scope="col">{words.files}</th>
            </tr>
          </thead>
          <tbody>
            {dumps.slice(0, MOST_ROWS).map((dump) => (
              <tr key={dump.folder}>
                <td>
                  <code>{dump.place}</code>
                </td>
                {stages ? <td>{dump.stage ?? "–"}</td> : null}
                <td>{dump.step ?? "–"}</td>
                <td>{dump.rank ?? "–"}</td>
                <td>{format.count(dump.records)}</td>
                <td>{format.count(dump.slots)}</td>
                <td>{[dump.construct ? "construct" : null, dump.stack ? "stack" : null].filter(Boolean).join(", ") || "–"}</td>
              </tr>
            ))}
          </tbody>
        </table>
      </section>
      {dumps.length > MOST_ROWS ? <p className={styles.more}>{words.asideMore(format.count(dumps.length - MOST_ROWS))}</p> : null}
    </div>
  );
}
