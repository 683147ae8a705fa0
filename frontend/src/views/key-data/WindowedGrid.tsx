import { type CSSProperties, type HTMLAttributes, type KeyboardEvent, type ReactNode, useEffect, useRef, useState } from "react";
import { gridRow, rowGroup } from "../../ui/grid-roles";
import styles from "./key-data.module.css";

interface Props {
  label: string;
  /** Heights in pixels; so many rows are in sight, and so many more stand ready above and below. */
  rowHeight: number;
  most: number;
  ready: number;
  count: number;
  /** The row that the arrow keys move from, -1: none. */
  at: number;
  /** The row that is marked, -1: none. */
  selected: number;
  /** So many rows before the one brought into sight are brought with it. */
  lead?: number;
  /** Starts the id of each row. */
  name: string;
  head: ReactNode;
  rowClass: string | undefined;
  /** What a row holds, and what it says of itself in `data-` attributes. */
  row: (index: number) => { readonly key: string | number; readonly cells: ReactNode; readonly data: RowData };
  onMove: (index: number) => void;
  /** Attributes of the grid. */
  grid?: HTMLAttributes<HTMLDivElement> & { readonly [attribute: `data-${string}`]: string | boolean };
}

type RowData = Readonly<Record<`data-${string}`, string | number | boolean>>;

/** A grid of rows of one height of which only those in sight are on the page. One stop of the Tab key: arrows, pages, Home and End move. */
export function WindowedGrid(props: Props) {
  const { label, rowHeight, most, ready, count, at, selected, lead = 0, name, head, rowClass, row, onMove, grid } = props;
  const scroller = useRef<HTMLDivElement>(null);
  const [top, setTop] = useState(0);
  const from = Math.max(0, top - ready);
  const to = Math.min(count, top + most + 2 * ready);
  const idOf = (index: number) => `${name}-${row(index).key}`;

  useEffect(() => {
    const element = scroller.current;
    if (element === null || selected < 0) return;
    const sight = element.clientHeight - rowHeight;
    const [above, below] = [selected * rowHeight, (selected + 1) * rowHeight];
    if (above >= element.scrollTop && below <= element.scrollTop + sight) return;
    element.scrollTop = lead > 0 ? Math.max(0, above - lead * rowHeight) : above < element.scrollTop ? above : below - sight;
  }, [selected, rowHeight, lead]);

  const onKeyDown = (event: KeyboardEvent) => {
    if (event.ctrlKey || event.metaKey || event.altKey || event.shiftKey) return;
    const moves: Record<string, number> = {
      ArrowDown: at + 1,
      ArrowUp: at - 1,
      PageDown: at + most,
      PageUp: at - most,
      Home: 0,
      End: count - 1,
    };
    const next = moves[event.key];
    if (next === undefined) return;
    event.preventDefault();
    if (count > 0) onMove(Math.max(0, Math.min(count - 1, next)));
  };
  return (
    // biome-ignore lint/a11y/useSemanticElements: rows that are on the page only in sight cannot be those of a table
    <div
      {...grid}
      ref={scroller}
      className={styles.grid}
      role="grid"
      aria-rowcount={count + 1}
      tabIndex={0}
      aria-label={label}
      aria-activedescendant={at >= from && at < to ? idOf(at) : undefined}
      style={{ maxHeight: `calc(${rowHeight * (most + 1)}px + var(--grid-end))`, "--grid-row": `${rowHeight}px` } as CSSProperties}
      onKeyDown={onKeyDown}
      onClick={({ target }) => {
        const pressed = (target as Element).closest<HTMLElement>("[data-index]");
        if (pressed !== null) onMove(Number(pressed.dataset.index));
      }}
      onScroll={({ currentTarget }) => setTop(Math.floor(currentTarget.scrollTop / rowHeight / ready) * ready)}
    >
      <div {...rowGroup} className={styles.head}>
        <div {...gridRow(1)} className={`${styles.gridRow} ${rowClass}`}>
          {head}
        </div>
      </div>
      <div {...rowGroup} style={{ height: count * rowHeight, position: "relative" }}>
        {Array.from({ length: Math.max(0, to - from) }, (_, offset) => {
          const index = from + offset;
          const { key, cells, data } = row(index);
          return (
            <div
              key={key}
              id={`${name}-${key}`}
              {...gridRow(index + 2, index === selected)}
              {...data}
              className={`${styles.gridRow} ${rowClass}`}
              style={{ top: index * rowHeight }}
              data-index={index}
            >
              {cells}
            </div>
          );
        })}
      </div>
    </div>
  );
}
