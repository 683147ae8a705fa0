import type { Origin } from "../../api/types";
import { useI18n } from "../../i18n";
import { at, NO_ROW, type Row } from "../../model/rows";
import styles from "./origins.module.css";
import { RoleGlyph } from "./RoleGlyph";
import { differenceText, growthText } from "./TreeRow";
import { evidenceSize, placeName } from "./words";
import type { TreeIndex } from "./workbench-state";

interface Props {
  origins: readonly Origin[];
  /** null while the tree is on its way: the list stands already, from the verdict alone. */
  index: TreeIndex | null;
  selected: Row;
  ignored: readonly number[];
  onSelect: (origin: number) => void;
}

/** The origins in execution order, for a narrow screen and for the wait before the tree. */
export function OriginsList({ origins, index, selected, ignored, onSelect }: Props) {
  const { t, format } = useI18n();
  const words = t.compare.origins;
  if (origins.length === 0) return null;
  return (
    <section className={styles.origins} aria-label={words.title}>
      <header className={styles.head}>
        <h2>{words.title}</h2>
        <span>{words.inOrder(format.count(origins.length))}</span>
      </header>
      <ol>
        {origins.map((origin, number) => {
          const row = index?.origins[number] ?? NO_ROW;
          const size = row !== NO_ROW && index !== null ? at(index.tree.difference, row) : Number.NaN;
          const growth = row !== NO_ROW && index !== null ? growthText(at(index.tree.growth, row)) : "";
          const shown = Number.isNaN(size) ? evidenceSize(origin) : size;
          const kind = words.withConfidence(words.kinds[origin.kind], t.compare.verdict.confidenceWords[origin.confidence]);
          return (
            <li key={`${origin.order}-${origin.module}-${origin.slot}`}>
              <button
                type="button"
                className={styles.origin}
                aria-current={row !== NO_ROW && row === selected}
                onClick={() => onSelect(number)}
                title={origin.module}
              >
                <RoleGlyph name="origin" />
                <span className={styles.names}>
                  <b>{placeName(origin.module)}</b>
                  <span>{ignored.includes(number) ? `${kind}, ${words.ignored}` : kind}</span>
                </span>
                <span className={styles.numbers}>
                  <b>{shown === null ? "" : differenceText(shown, t.compare)}</b>
                  <span>{growth}</span>
                </span>
              </button>
            </li>
          );
        })}
      </ol>
    </section>
  );
}
