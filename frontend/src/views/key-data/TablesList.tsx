import type { KeyTable } from "../../api/run-verdict";
import { useI18n } from "../../i18n";
import { exact, number, percent } from "../../i18n/format";
import { gridCell } from "../../ui/grid-roles";
import { KeySign } from "../parts/Pipeline";
import { placeText } from "../parts/run-words";
import styles from "./key-data.module.css";
import { WindowedGrid } from "./WindowedGrid";
import { differsInShape, largestText, shapeText, shareText } from "./words";

interface Props {
  label: string;
  tables: readonly KeyTable[];
  selected: number | null;
  onSelect: (t: number) => void;
}

const COLUMNS = ["step", "rank", "micro_step", "id", "shape", "same", "first", "max_abs", "max_rel", "within_1e_3", "within_1e_2"] as const;
type ColumnName = (typeof COLUMNS)[number];

/** The tables of a key, a row each, with the numbers of msprobe's SingleComparator. Only the rows in sight are on the page. */
export function TablesList({ label, tables, selected, onSelect }: Props) {
  const { t } = useI18n();
  const words = t.loop.key;
  const columns = COLUMNS.filter((column) => column === "same" || tables.some((table) => isHeld(table, column)));
  const at = tables.findIndex((table) => table.t === selected);
  return (
    <WindowedGrid
      label={label}
      rowHeight={24}
      most={9}
      ready={6}
      count={tables.length}
      at={at}
      selected={at}
      name="table"
      rowClass={styles.tableRow}
      onMove={(index) => {
        const table = tables[index];
        if (table !== undefined) onSelect(table.t);
      }}
      head={
        <>
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
        </>
      }
      row={(index) => {
        const table = tables[index] as KeyTable;
        return {
          key: table.t,
          data: { "data-state": table.state, "data-table": table.t },
          cells: (
            <>
              <span {...gridCell("gridcell")} className={styles.sign}>
                <KeySign state={table.state} />
                <span className="visually-hidden">{t.loop.keyDataStates[table.state]}</span>
              </span>
              {columns.map((column) => (
                <span key={column} {...gridCell("gridcell")} data-column={column} title={titleOf(table, column, t)}>
                  {cellText(table, column)}
                </span>
              ))}
            </>
          ),
        };
      }}
    />
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
      return differsInShape(table) ? "–" : shareText(table[column]);
    case "first":
      return table.first_mismatch === null ? "" : `${table.first_mismatch}`;
    case "max_abs":
      return largestText(table, table.max_abs, number(table.max_abs));
    case "max_rel":
      return largestText(table, table.max_rel, table.max_rel === 0 ? "0" : percent(table.max_rel));
  }
}

function titleOf(table: KeyTable, column: ColumnName, t: ReturnType<typeof useI18n>["t"]): string | undefined {
  if (table.cropped && (column === "shape" || (column !== "first" && differsInShape(table))))
    return `${shapeText(table)}: ${t.loop.key.cropped}`;
  if (column === "max_abs" || column === "max_rel") {
    const [left, right, both] = table.nan ?? [0, 0, 0];
    return cellText(table, column) === "NaN" ? t.loop.key.nan(`${left}`, `${right}`, `${both}`) : exact(table[column]);
  }
  if (column === "id" && table.right !== null) return t.loop.key.aligned(placeText(table.right, t));
  return cellText(table, column) || undefined;
}
