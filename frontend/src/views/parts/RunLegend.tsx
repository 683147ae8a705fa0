import { useI18n } from "../../i18n";
import type { CellState } from "../../model/parts";
import { openKeys } from "../../ui/shell";
import legend from "../compare/legend.module.css";
import { PartSign } from "./PartSign";
import grid from "./parts-grid.module.css";
import styles from "./run-legend.module.css";

/** What the cells mean, and how many of the parts are bad: the footer of the page. Only signs that occur. */
export function RunLegend({ states, first, line }: { states: ReadonlySet<CellState>; first: string | null; line: string }) {
  const { t } = useI18n();
  const words = t.loop.legend;
  const items: { states: readonly CellState[]; text: string; first?: boolean }[] = [
    { states: ["identical"], text: words.equal },
    { states: ["consistent"], text: words.noise },
    ...(first === null ? [] : [{ states: ["diverged"] as const, text: first, first: true }]),
    { states: ["diverged"], text: first === words.first ? words.later : words.diverged },
    { states: ["left_only", "right_only"], text: words.only },
    { states: ["not_comparable"], text: words.notComparable },
    { states: ["failed"], text: words.failed },
    { states: ["queued", "running"], text: words.waiting },
    { states: ["cancelled"], text: words.cancelled },
  ];
  const shown = items.filter((item) => item.states.some((state) => states.has(state)));
  return (
    <section className={`${legend.legend} ${styles.legend}`} aria-label={words.label} data-empty={shown.length === 0}>
      {shown.length === 0 ? null : <span>{words.parts}</span>}
      {shown.map(({ states: [state], text, first = false }) => (
        <span key={text} className={legend.item}>
          <i className={`${grid.part} ${styles.swatch}`} data-verdict={state} data-first={first}>
            {state === undefined || state === "identical" || state === "left_only" ? null : (
              <PartSign state={state} first={first} size={10} />
            )}
          </i>
          {text}
        </span>
      ))}
      <span className={legend.end}>{line}</span>
      <button type="button" className={legend.keys} onClick={openKeys}>
        <kbd>?</kbd> {words.keys}
      </button>
    </section>
  );
}
