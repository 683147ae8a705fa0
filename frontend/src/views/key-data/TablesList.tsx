import { type KeyboardEvent, useEffect, useRef, useState } from "react";
import type { KeyTable } from "../../api/run-verdict";
import { useI18n } from "../../i18n";
import { exact, number, percent } from "../../i18n/format";
import { gridCell, gridRow, rowGroup } from "../../ui/grid-roles";
import { KeySign } from "../parts/Pipeline";
import { placeText } from "../parts/run-words";
import styles from "./key-data.module.css";
import { shapeText, shareText } from "./words";

interface Props {
  label: string;
  tables: readonly KeyTable[];
  selected: number | null;
  onSelect: (t: number) => void;
}

const ROW = 24;
const MOST = 9;
const STEP = 6;
const COLUMNS = ["step", "rank", "micro_step", "id", "shape", "same", "first", "max_abs", "max_rel", "within_1e_3", "within_1e_2"] as const;
type ColumnName = (typeof COLUMNS)[number];

/** The tables of a key, a row each, with the numbers of msprobe's SingleComparator. Only the rows in sight are on the page. */
export function TablesList({ label, tables, selected, onSelect }: Props) {
  const { t } = useI18n();
  const words = t.loop.key;
  const scroller = useRef<HTMLDivElement>(null);
  const [top, setTop] = useState(0);
  const at = tables.findIndex((table) => table.t === selected);
  const from = Math.max(0, top - STEP);
  const to = Math.min(tables.length, top + MOST + STEP * 2);
  const rowOf = (table: KeyTable) => `table-${table.t}`;
  const columns = COLUMNS.filter((column) => column === "same" || tables.some((table) => isHeld(table, column)));

  useEffect(() => {
    const element = scroller.current;
    if (element === null || at < 0) return;
    const sight = element.clientHeight - ROW;
    if (at * ROW < element.scrollTop) element.scrollTop = at * ROW;
    else if ((at + 1) * ROW > element.scrollTop + sight) element.scrollTop = (at + 1) * ROW - sight;
  }, [at]);

  const go = (next: number) => {
    const table = tables[Math.max(0, Math.min(tables.length - 1, next))];
    if (table !== undefined) onSelect(table.t);
  };
  const onKeyDown = (event: KeyboardEvent) => {
    if (event.ctrlKey || event.metaKey || event.altKey || event.shiftKey) return;
    const moves: Record<string, number> = {
      ArrowDown: at + 1,
      ArrowUp: at - 1,
      PageDown: at + MOST,
      PageUp: at - MOST,
      Home: 0,
      End: tables.length - 1,
    };
    const next = moves[event.key];
    if (next === undefined) return;
    event.preventDefault();
    go(next);
  };
  const current = tables[at];
  return (
    // biome-ignore lint/a11y/useSemanticElements: rows that are on the page only in sight cannot be those of a table
    <div
      ref={scroller}
      className={styles.tables}
      role="grid"
      aria-rowcount={tables.length + 1}
      tabIndex={0}
      aria-label={label}
      aria-activedescendant={current !== undefined && at >= from && at < to ? rowOf(current) : undefined}
      style={{ maxHeight: ROW * (MOST + 1) + 12 }}
      onKeyDown={onKeyDown}
      onClick={({ target }) => {
        const row = (target as Element).closest<HTMLElement>("[data-table]");
        if (row !== null) onSelect(Number(row.dataset.table));
      }}
      onScroll={({ currentTarget }) => setTop(Math.floor(currentTarget.scrollTop / ROW / STEP) * STEP)}
    >
      <div {...rowGroup} className={styles.head}>
        <div {...gridRow(1)} className={styles.tableRow}>
          <span {...gridCell("columnheader")} className={styles.sign}>
            <span className="visually-hidden">{words.columns.state}</span>
          </span>
          {columns.map((column) => (
            <span
              key={column}
              {...gridCell("columnheader")}
              data-column={column}
              title={words.names[column as keyof typeof words.names] ?? words.columns[column]}
            >
              {words.columns[column]}
            </span>
          ))}
        </div>
      </div>
      <div {...rowGroup} style={{ height: tables.length * ROW, position: "relative" }}>
        {tables.slice(from, to).map((table, index) => {
          const place = from + index;
          return (
            <div
              key={table.t}
              id={rowOf(table)}
              {...gridRow(place + 2, table.t === selected)}
              className={styles.tableRow}
              data-state={table.state}
              style={{ top: place * ROW }}
              data-table={table.t}
            >
              <span {...gridCell("gridcell")} className={styles.sign}>
                <KeySign state={table.state} />
                <span className="visually-hidden">{t.loop.keyDataStates[table.state]}</span>
              </span>
              {columns.map((column) => (
                <span key={column} {...gridCell("gridcell")} data-column={column} title={titleOf(table, column, t)}>
                  {cellText(table, column)}
                </span>
              ))}
            </div>
          );
        })}
      </div>
    </div>
  );
}

/** Columns that no table fills are left out: ranks of a run that has none. */
function isHeld(table: KeyTable, column: ColumnName): boolean {
  if (column === "shape") return table.left_shape !== null || table.right_shape !== null;
  if (column === "first") return true;
  if (column === "id") return table.id !== "0";
  return table[column] !== null;
}

function cellText(table: KeyTable, column: ColumnName): string {
  switch (column) {
    case "step":
    case "rank":
    case "micro_step":
      return table[column] === null ? "–" : `${table[column]}`;
    case "id":
      return table.id;
    case "shape":
      return shapeText(table);
    case "same":
    case "within_1e_3":
    case "within_1e_2":
      return shareText(table[column]);
    case "first":
      return table.first_mismatch === null ? "" : `${table.first_mismatch}`;
    case "max_abs":
      return number(table.max_abs);
    case "max_rel":
      return table.max_rel === 0 ? "0" : percent(table.max_rel);
  }
}

function titleOf(table: KeyTable, column: ColumnName, t: ReturnType<typeof useI18n>["t"]): string | undefined {
  if (column === "shape" && table.cropped) return `${shapeText(table)}: ${t.loop.key.cropped}`;
  if (column === "max_abs" || column === "max_rel") return exact(table[column]);
  if (column === "id" && table.right !== null) return t.loop.key.aligned(placeText(table.right, t));
  return cellText(table, column) || undefined;
}
