import { type CSSProperties, type KeyboardEvent, type ReactNode, useEffect, useMemo, useRef, useState } from "react";
import type { RunPart } from "../../api/types";
import { useI18n } from "../../i18n";
import { type CellLayout, cellLayout, visibleRange } from "../../layout/cells";
import {
  type Cell,
  cellState,
  hasPanel,
  hasRanks,
  matrixOf,
  neighbourPlace,
  type PartsMatrix,
  type Place,
  placeOfCell,
} from "../../model/parts";
import { gridCell, gridRow } from "../../ui/grid-roles";
import { Segments } from "../../ui/segments";
import { useViewState } from "../../use-view-state";
import { PHONE, useMedia } from "../compare/use-media";
import { useSize } from "../compare/use-size";
import { Breakable } from "./Breakable";
import { PartSign } from "./PartSign";
import styles from "./parts-grid.module.css";
import { StepStrip } from "./StepStrip";
import { cellName, partName, partReason, stateWord } from "./words";

interface Props {
  parts: readonly RunPart[];
  /** `n` and rank of the cell that stands out, and what it is called: the first divergence, or the earliest so far. */
  first: { readonly word: string; readonly n: number; readonly rank: number | null } | null;
  /** `n` of the cell that takes the focus. */
  entry: number | null;
  /** The reader comes back from that part. */
  returned: boolean;
  /** Nothing takes the focus for whoever comes for the first time: there is no answer yet. */
  quiet?: boolean;
  names: Record<"left" | "right", string>;
  onOpen: (n: number) => void;
  /** What can be done about a part, beside what is said of it. */
  action?: (part: RunPart) => ReactNode;
}

/** Room for the names of the stages; on a phone they stand above their cells. */
const LABEL_WIDTH = 180;
/** Where no stage has a name: room for what stands at the left of the head. */
const CORNER_WIDTH = 40;
const PADDING = 16;
const END = 8;
/** So many cells stand ready on each side of what is in sight. */
const OVERSCAN = 4;
/** From so many rows on the matrix scrolls in itself. */
const MOST_ROWS = 14;

/** Stage × step × rank, a cell a part, or a rank of it. One stop of the Tab key; arrows move, Enter opens. */
export function PartsGrid({ parts, first, entry, returned, quiet = false, names, onOpen, action }: Props) {
  const { t, language } = useI18n();
  const words = t.parts;
  const [{ ranks }, change] = useViewState();
  const box = useRef<HTMLDivElement>(null);
  const width = useSize(box)?.width ?? 0;
  const phone = useMedia(PHONE);
  const [scroll, setScroll] = useState({ left: 0, top: 0 });

  const told = hasRanks(parts);
  const full = useMemo(() => matrixOf(parts, told), [parts, told]);
  const folded = useMemo(() => (told ? matrixOf(parts) : full), [parts, told, full]);
  const staged = full.stages.length > 1 || full.stages[0] !== null;
  const label = phone ? 0 : staged ? LABEL_WIDTH : CORNER_WIDTH;
  const available = Math.max(0, width - label - PADDING - END);
  const fullLayout = useMemo(() => cellLayout(full.columns, available, phone, staged), [full, available, phone, staged]);
  const fits = available === 0 || fullLayout.width <= available;
  const byRank = told && (ranks === null ? fits && !phone : ranks === "all");
  const matrix = byRank ? full : folded;
  const layout = useMemo(
    () => (byRank ? fullLayout : cellLayout(folded.columns, available, phone, staged)),
    [byRank, fullLayout, folded, available, phone, staged],
  );

  const [current, setCurrent] = useState<{ n: number; rank: number | null } | null>(
    entry === null ? null : { n: entry, rank: entry === first?.n ? first.rank : null },
  );
  const [hovered, setHovered] = useState<Cell | null>(null);
  const place = current === null ? null : placeOfCell(matrix, current.n, current.rank);
  const moved = useRef(false);

  // Brings a cell into sight and, where it was asked for, the focus to it: the cell may not have been on the page before.
  const show = (to: Place) => {
    const scroller = box.current;
    if (scroller === null || width === 0) return;
    const x = layout.x[to.column] ?? 0;
    const y = layout.headHeight + to.row * layout.rowHeight;
    if (x < scroller.scrollLeft) scroller.scrollLeft = Math.max(0, x - 24);
    else if (x + layout.cell > scroller.scrollLeft + available) scroller.scrollLeft = x + layout.cell + 24 - available;
    if (y < scroller.scrollTop + layout.headHeight) scroller.scrollTop = y - layout.headHeight;
    else if (y + layout.rowHeight > scroller.scrollTop + scroller.clientHeight)
      scroller.scrollTop = y + layout.rowHeight - scroller.clientHeight;
  };
  const shown = useRef(show);
  shown.current = show;

  // Only where nothing else has it: a reader who came by keyboard to somewhere else is not taken away. Not before the width is known, since
  // the cells take their places by it.
  const measured = width > 0;
  useEffect(() => {
    if (!measured || (quiet && !returned) || document.activeElement !== document.body) return;
    const cell = () => box.current?.querySelector<HTMLElement>(`[data-part="${entry}"][tabindex="0"]`);
    const scroller = box.current;
    if (scroller === null) return;
    cell()?.focus({ preventScroll: true });
    // Whoever comes for the first time reads the verdict above, however far down the cell is.
    if (returned) cell()?.scrollIntoView({ block: "nearest", inline: "nearest" });
  }, [entry, measured, returned, quiet]);
  const layoutKey = `${byRank} ${layout.width} ${measured}`;
  // biome-ignore lint/correctness/useExhaustiveDependencies: once for each shape of the matrix, not at each move
  useEffect(() => {
    if (place === null || box.current === null) return;
    shown.current(place);
    // With what came before it and what came after it in sight.
    box.current.scrollLeft = Math.max(0, (layout.x[place.column] ?? 0) - available / 2);
  }, [layoutKey]);

  useEffect(() => {
    if (!moved.current || place === null) return;
    moved.current = false;
    box.current?.querySelector<HTMLElement>(`[data-row="${place.row}"][data-column="${place.column}"]`)?.focus({ preventScroll: true });
  });

  const onKeyDown = (event: KeyboardEvent) => {
    if (event.ctrlKey || event.metaKey || event.altKey || event.shiftKey || place === null) return;
    if (!/^(Arrow|Home|End)/.test(event.key)) return;
    event.preventDefault();
    const to = neighbourPlace(matrix, place, event.key);
    const cell = to === null ? null : (matrix.cells[to.row]?.[to.column] ?? null);
    if (to === null || cell === null) return;
    moved.current = true;
    setCurrent({ n: cell.part.n, rank: cell.rank });
    show(to);
  };

  const [from, end] =
    width === 0
      ? [0, Math.min(matrix.columns.length, 400)]
      : visibleRange(layout.x, layout.cell, scroll.left, scroll.left + available, OVERSCAN);
  const rowsFrom = Math.max(0, Math.floor(scroll.top / layout.rowHeight) - 2);
  const rowsEnd = Math.min(matrix.stages.length, rowsFrom + MOST_ROWS + 5);
  const overflowing = width > 0 && layout.width > available + 1;
  const currentCell = place === null ? null : (matrix.cells[place.row]?.[place.column] ?? null);
  const read = hovered ?? currentCell;
  const note = staged ? (byRank ? words.matrixNoteRanks : words.matrixNote) : byRank ? words.matrixNoteOneRowRanks : words.matrixNoteOneRow;
  const isFirst = (cell: Cell) => first !== null && cell.part.n === first.n && (cell.rank === null || cell.rank === first.rank);
  return (
    <section className={styles.section} aria-label={staged ? words.matrix : words.matrixOneRow}>
      <header className={styles.header}>
        <h2>{staged ? words.matrixTitle : words.matrixTitleOneRow}</h2>
        <span className={styles.note}>{note}</span>
        {told ? (
          <Segments
            className={styles.choice}
            label={words.ranksChoice}
            value={byRank ? "all" : "worst"}
            options={[
              { value: "all", text: words.allRanks },
              { value: "worst", text: words.worstRank },
            ]}
            onChange={(value) => change({ ranks: value })}
          />
        ) : null}
      </header>
      {overflowing ? (
        <StepStrip
          parts={parts}
          first={parts.find(({ n }) => n === first?.n)?.step}
          from={scroll.left / layout.width}
          to={(scroll.left + available) / layout.width}
          left={label + PADDING}
          width={available}
          onMove={(share) => {
            if (box.current !== null) box.current.scrollLeft = share * layout.width - available / 2;
          }}
        />
      ) : null}
      <div
        ref={box}
        className={styles.scroller}
        style={matrix.stages.length > MOST_ROWS ? { maxHeight: layout.headHeight + MOST_ROWS * layout.rowHeight } : undefined}
        onScroll={({ currentTarget: { scrollLeft: left, scrollTop: top } }) => setScroll({ left, top })}
      >
        {/* biome-ignore lint/a11y/useSemanticElements: rows that are on the page only in sight cannot be those of a table */}
        <div
          role="grid"
          aria-rowcount={matrix.stages.length + 1}
          aria-colcount={matrix.columns.length + 1}
          tabIndex={-1}
          aria-label={staged ? words.matrix : words.matrixOneRow}
          className={styles.grid}
          data-testid="parts"
          data-phone={phone}
          data-staged={staged}
          style={
            {
              width: label + PADDING + END + layout.width,
              height: layout.headHeight + matrix.stages.length * layout.rowHeight,
              "--cell": `${layout.cell}px`,
              "--cell-height": `${layout.cellHeight}px`,
              "--row": `${layout.rowHeight}px`,
              "--label": `${label + PADDING}px`,
            } as CSSProperties
          }
          onKeyDown={onKeyDown}
          onMouseLeave={() => setHovered(null)}
        >
          <Head
            matrix={matrix}
            layout={layout}
            from={from}
            end={end}
            offset={label + PADDING}
            byRank={byRank}
            first={first?.n ?? null}
            parts={parts}
          />
          {matrix.stages.slice(rowsFrom, rowsEnd).map((stage, index) => {
            const row = rowsFrom + index;
            return (
              <div
                key={stage}
                {...gridRow(row + 2)}
                className={styles.row}
                style={{ top: layout.headHeight + row * layout.rowHeight }}
                data-first={parts.some((part) => part.n === first?.n && part.stage === stage)}
              >
                <span {...gridCell("rowheader", 1)} className={styles.stage} title={stage ?? undefined}>
                  <span className={staged ? undefined : "visually-hidden"}>
                    <Breakable name={stage ?? words.noStage} />
                  </span>
                </span>
                {columnsOf(from, end, place?.row === row ? place.column : null).map((column) => {
                  const cell = matrix.cells[row]?.[column] ?? null;
                  if (cell === null) return null;
                  const state = cellState(cell);
                  const opens = hasPanel(cell.part);
                  const one = isFirst(cell);
                  return (
                    <span
                      key={`${matrix.columns[column]?.step} ${cell.rank}`}
                      {...gridCell("gridcell", column + 2)}
                      className={styles.cell}
                      style={{ left: label + PADDING + (layout.x[column] as number) }}
                    >
                      <button
                        type="button"
                        className={styles.part}
                        data-part={cell.part.n}
                        data-row={row}
                        data-column={column}
                        data-verdict={state}
                        data-first={one}
                        aria-label={cellName(cell, one ? (first?.word ?? null) : null, names, t, language)}
                        aria-disabled={!opens || undefined}
                        tabIndex={place?.row === row && place.column === column ? 0 : -1}
                        onFocus={() => setCurrent({ n: cell.part.n, rank: cell.rank })}
                        onMouseEnter={() => setHovered(cell)}
                        onClick={() => (opens ? onOpen(cell.part.n) : setCurrent({ n: cell.part.n, rank: cell.rank }))}
                      >
                        {state === "identical" || state === "left_only" || state === "right_only" ? null : (
                          <PartSign state={state} first={one} size={Math.min(15, layout.cell - 4)} />
                        )}
                      </button>
                    </span>
                  );
                })}
              </div>
            );
          })}
        </div>
      </div>
      {read === null ? null : (
        <Readout cell={read} mark={isFirst(read) ? (first?.word ?? null) : null} names={names} action={action?.(read.part)} />
      )}
    </section>
  );
}

/** The columns of a row that are drawn: those in sight, and the one that has the focus, which would be lost with it. */
function columnsOf(from: number, end: number, focused: number | null): readonly number[] {
  const columns = Array.from({ length: end - from }, (_, at) => from + at);
  return focused === null || (focused >= from && focused < end) ? columns : [...columns, focused];
}

interface HeadProps {
  matrix: PartsMatrix;
  layout: CellLayout;
  from: number;
  end: number;
  offset: number;
  byRank: boolean;
  first: number | null;
  parts: readonly RunPart[];
}

/** Steps, and below them ranks where they have columns of their own. */
function Head({ matrix, layout, from, end, offset, byRank, first, parts }: HeadProps) {
  const { t } = useI18n();
  const step = parts.find(({ n }) => n === first)?.step;
  const starts: { column: number; index: number }[] = [];
  let index = -1;
  for (let column = 0; column < end; column += 1) {
    if (column > 0 && matrix.columns[column]?.step === matrix.columns[column - 1]?.step) continue;
    index += 1;
    if (column >= from - 40) starts.push({ column, index });
  }
  const marked = starts.find(({ column }) => matrix.columns[column]?.step === step)?.index ?? null;
  // The name of the step that matters is always there, and pushes those aside that would run into it.
  const named = ({ index: at }: { index: number }) =>
    at === marked || (at % layout.nameEvery === 0 && (marked === null || Math.abs(at - marked) >= layout.nameEvery));
  return (
    <div {...gridRow(1)} className={styles.head} style={{ height: layout.headHeight }}>
      <span {...gridCell("columnheader", 1)} className={styles.corner} data-ranks={byRank}>
        <span>{t.parts.steps}</span>
        {byRank ? <span>{t.parts.columns.ranks.toLowerCase()}</span> : null}
      </span>
      {starts.filter(named).map(({ column }) => (
        <span
          key={column}
          {...gridCell("columnheader", column + 2)}
          className={styles.step}
          style={{ left: offset + (layout.x[column] as number) }}
          data-first={matrix.columns[column]?.step === step}
          data-centred={!byRank}
        >
          {matrix.columns[column]?.step ?? "–"}
        </span>
      ))}
      {byRank
        ? matrix.columns.slice(from, end).map(({ rank }, at) => (
            <span
              key={layout.x[from + at]}
              className={styles.rank}
              style={{ left: offset + (layout.x[from + at] as number) }}
              aria-hidden="true"
            >
              {rank}
            </span>
          ))
        : null}
    </div>
  );
}

/** The cell under the pointer, else the one that arrows stand on, in words. */
function Readout({ cell, mark, names, action }: { cell: Cell; mark: string | null; names: Props["names"]; action: ReactNode }) {
  const { t, language } = useI18n();
  const { where, what } = partReason(cell.part, names, t, language);
  const state = cellState(cell);
  return (
    <div className={styles.readout}>
      <p className={styles.words} aria-hidden="true">
        <PartSign state={state} first={mark !== null} />
        <b>{partName(cell.part, t)}</b>
        {cell.rank === null ? null : <b>{t.parts.rank(`${cell.rank}`)}</b>}
        <span className={state === "diverged" || state === "failed" ? styles.bad : undefined}>{stateWord(state, mark, t)}</span>
        {where === "" ? null : <b>{where}</b>}
        {what === "" ? null : <span className={styles.what}>{what}</span>}
      </p>
      {action}
    </div>
  );
}
