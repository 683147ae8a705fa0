import { type KeyboardEvent, type MouseEvent, memo, useCallback, useEffect, useLayoutEffect, useMemo, useRef, useState } from "react";
import type { Origin } from "../../api/types";
import { useI18n } from "../../i18n";
import { AXIS_TICKS, axisShare } from "../../layout/axis";
import { barWidth, ROW_HEIGHT, type TreeColumns, treeColumns } from "../../layout/grid";
import { asRow, at, type Row } from "../../model/rows";
import { holdsKept, placeOf, type VisibleRows } from "../../model/visible";
import { paintBars } from "../../paint/bars";
import { SideMark } from "../../ui/side";
import { type RowSides, TreeRow } from "./TreeRow";
import styles from "./tree.module.css";
import { useSize } from "./use-size";
import { useTheme } from "./use-theme";
import { capitalised } from "./words";
import type { Filter, TreeIndex } from "./workbench-state";

/** A row to bring into sight; a new token asks again for the same row. */
export interface Reveal {
  readonly row: Row;
  readonly token: number;
}

interface Props {
  index: TreeIndex;
  view: VisibleRows;
  filter: Filter;
  opened: ReadonlySet<number>;
  closed: ReadonlySet<number>;
  selected: Row;
  reveal: Reveal | null;
  anchor: number | null;
  origins: readonly Origin[];
  sides: RowSides;
  onSelect: (row: Row) => void;
  onToggle: (place: number) => void;
  /** `top`: it is the first row of all, where a page stands that nobody scrolled. */
  onAnchor: (row: Row, top: boolean) => void;
}

const HEADER_ROW = { role: "row", "aria-rowindex": 1 } as const;
const HEADER = { role: "columnheader" } as const;
const ROWGROUP = { role: "rowgroup" } as const;
const HEAD = 26;
/** Rows are mounted in steps of so many, so that a scroll of a few rows mounts nothing. */
const STEP = 8;

/**
 * The tree as a grid of mounted rows: those in sight and a few around them, whatever there is. One canvas over the bar column draws their
 * bars; it moves with the rows, so text and bars never part while scrolling.
 */
export function TreeTable(props: Props) {
  const { index, view, filter, selected, reveal, anchor, origins, sides, onSelect, onToggle, onAnchor } = props;
  const { t } = useI18n();
  const words = t.compare;
  const theme = useTheme();
  const scroller = useRef<HTMLDivElement>(null);
  const canvas = useRef<HTMLCanvasElement>(null);
  const size = useSize(scroller);
  const columns = useMemo(() => treeColumns(size?.width ?? 806), [size?.width]);
  const sight = Math.ceil((size?.height ?? 600) / ROW_HEIGHT);
  const [top, setTop] = useState(0);

  const from = Math.max(0, Math.min(top, view.length) - STEP);
  const to = Math.min(view.length, top + sight + 2 * STEP);

  useRevealing({ scroller, view, reveal, anchor, filtered: filter.keep !== null, ready: size !== null });

  const anchorTimer = useRef(0);
  const onScroll = useCallback(() => {
    const element = scroller.current;
    if (element === null) return;
    const first = Math.floor(element.scrollTop / ROW_HEIGHT);
    setTop(Math.floor(first / STEP) * STEP);
    window.clearTimeout(anchorTimer.current);
    anchorTimer.current = window.setTimeout(() => {
      const place = Math.round(element.scrollTop / ROW_HEIGHT);
      const row = view.rows[place];
      if (row !== undefined) onAnchor(asRow(row), place === 0);
    }, 250);
  }, [view, onAnchor]);
  useEffect(() => () => window.clearTimeout(anchorTimer.current), []);
  // A shorter list may leave the window behind its end.
  // biome-ignore lint/correctness/useExhaustiveDependencies: a new list is the reason to look again
  useLayoutEffect(onScroll, [view.length, size?.height]);

  useLayoutEffect(() => {
    if (canvas.current !== null && size !== null) paintBars(canvas.current, index.tree, view, from, to, barWidth(columns), theme);
  }, [index, view, from, to, columns, theme, size]);

  const selectedPlace = placeOf(view, selected);
  const onClick = (event: MouseEvent) => {
    const row = (event.target as Element).closest<HTMLElement>("[data-place]");
    if (row === null) return;
    const place = Number(row.dataset.place);
    const strip = view.strips.get(place);
    if ((event.target as Element).closest("[data-toggle]") !== null || strip !== undefined) onToggle(place);
    if (strip === undefined) onSelect(asRow(at(view.rows, place)));
  };
  const onKeyDown = (event: KeyboardEvent) => {
    // Enter is no command of the page: on a button it must stay the button's.
    if (event.key !== "Enter" || event.target !== scroller.current || selectedPlace < 0) return;
    event.preventDefault();
    onToggle(selectedPlace);
  };
  const onDoubleClick = (event: MouseEvent) => {
    const row = (event.target as Element).closest<HTMLElement>("[data-place]");
    if (row === null || (event.target as Element).closest("[data-toggle]") !== null) return;
    const place = Number(row.dataset.place);
    if (!view.strips.has(place)) onToggle(place);
  };

  const mounted = selectedPlace >= from && selectedPlace < to;
  const { tree } = index;
  const rows: React.ReactNode[] = [];
  for (let place = from; place < to; place += 1) {
    const row = asRow(at(view.rows, place));
    const strip = view.strips.get(place) ?? null;
    const originIndex = at(tree.origin, row);
    rows.push(
      <TreeRow
        key={strip === null ? row : `strip-${row}`}
        tree={tree}
        row={row}
        place={place}
        depth={at(view.depth, place)}
        strip={strip}
        expanded={expansion(props, place)}
        selected={place === selectedPlace && (strip === null || !strip.open)}
        context={filter.matches !== null && filter.matches[row] === 0}
        origin={strip === null && originIndex >= 0 ? (origins[originIndex] ?? null) : null}
        sides={sides}
        words={words}
      />,
    );
  }
  return (
    <div
      ref={scroller}
      role="treegrid"
      aria-label={words.tree.label}
      aria-rowcount={view.length + 1}
      aria-colcount={7}
      tabIndex={0}
      {...(mounted ? { "aria-activedescendant": `row-${selectedPlace}` } : {})}
      className={styles.scroller}
      style={{ "--columns": template(columns) } as React.CSSProperties}
      data-hidden={hiddenColumns(columns)}
      data-testid="tree"
      onScroll={onScroll}
      onClick={onClick}
      onDoubleClick={onDoubleClick}
      onKeyDown={onKeyDown}
    >
      <Head columns={columns} sides={sides} />
      <div className={styles.space} style={{ height: view.length * ROW_HEIGHT }} {...ROWGROUP}>
        {rows}
        <canvas
          ref={canvas}
          className={styles.bars}
          style={{ top: from * ROW_HEIGHT, left: columns.gutter + columns.train + columns.inference }}
        />
      </div>
    </div>
  );
}

/** Open, closed, or nothing to open. */
function expansion({ index, view, filter, opened, closed }: Props, place: number): boolean | null {
  const strip = view.strips.get(place);
  if (strip !== undefined) return strip.open;
  const row = at(view.rows, place);
  if (at(index.tree.size, row) === 1) return null;
  if (filter.keep !== null && holdsKept(index.tree, filter.keep, row)) return !closed.has(row);
  return opened.has(row);
}

function template(columns: TreeColumns): string {
  return Object.values(columns)
    .map((width) => `${width}px`)
    .join(" ");
}

function hiddenColumns(columns: TreeColumns): string {
  return (["inference", "growth", "inside"] as const).filter((name) => columns[name] === 0).join(" ");
}

export const Head = memo(function Head({ columns, sides }: { columns: TreeColumns; sides: RowSides }) {
  const { t } = useI18n();
  const words = t.compare.tree;
  const width = barWidth(columns);
  const right = words.ifDifferent(capitalised(sides.right));
  return (
    <div className={styles.head} {...HEADER_ROW}>
      <span {...HEADER} className={styles.gutter}>
        <span className="visually-hidden">{words.role}</span>
      </span>
      <span {...HEADER} className={`${styles.train} ${styles.headTrain}`}>
        <SideMark side="left" />
        {capitalised(sides.left)}
      </span>
      <span {...HEADER} className={styles.inference}>
        <span>
          <SideMark side="right" />
          <span className={styles.cut} title={right}>
            {right}
          </span>
        </span>
      </span>
      <span {...HEADER} className={styles.axis}>
        <span className="visually-hidden">{words.axis}</span>
        {AXIS_TICKS.filter((_, place) => width >= 120 || place !== 1).map((tick, place) => (
          <span
            key={tick}
            className={place === 0 ? styles.firstTick : styles.tick}
            style={{ left: axisShare(tick) * width }}
            aria-hidden="true"
          >
            {tick * 100} %
          </span>
        ))}
      </span>
      <span {...HEADER} className={styles.value}>
        {words.difference}
      </span>
      <span {...HEADER} className={styles.growth}>
        {words.growth}
      </span>
      <span {...HEADER} className={styles.inside}>
        {words.inside}
      </span>
    </div>
  );
});

interface Revealing {
  scroller: React.RefObject<HTMLDivElement | null>;
  view: VisibleRows;
  reveal: Reveal | null;
  anchor: number | null;
  filtered: boolean;
  ready: boolean;
}

/**
 * At first the place that the link names; else under a filter the top of its answer, and without one the selected row a little above the
 * middle. Later whatever is asked to be in sight.
 */
function useRevealing({ scroller, view, reveal, anchor, filtered, ready }: Revealing): void {
  const done = useRef<number | null>(null);
  useLayoutEffect(() => {
    const element = scroller.current;
    if (element === null || !ready || reveal === null || done.current === reveal.token) return;
    const first = done.current === null;
    const place = placeOf(view, reveal.row);
    if (first && anchor !== null) {
      done.current = reveal.token;
      const top = placeOf(view, asRow(anchor));
      if (top >= 0) {
        element.scrollTop = top * ROW_HEIGHT;
        return;
      }
    }
    if (first && filtered) {
      done.current = reveal.token;
      return;
    }
    if (place < 0) return;
    done.current = reveal.token;
    const inner = element.clientHeight - HEAD;
    const rowTop = place * ROW_HEIGHT;
    const above = rowTop < element.scrollTop;
    const below = rowTop + ROW_HEIGHT > element.scrollTop + inner;
    if (!above && !below) return;
    const near = Math.abs(rowTop - element.scrollTop - (below ? inner - ROW_HEIGHT : 0)) <= 3 * ROW_HEIGHT;
    if (near && !first) element.scrollTop = above ? rowTop : rowTop + ROW_HEIGHT - inner;
    else element.scrollTop = Math.max(0, rowTop - inner * 0.4);
  }, [scroller, view, reveal, anchor, filtered, ready]);
}
