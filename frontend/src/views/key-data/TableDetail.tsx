import { ChevronLeft, ChevronRight } from "lucide-react";
import { type ReactNode, useEffect, useState } from "react";
import { useTableValues } from "../../api/key-data";
import type { KeyData, KeyTable, TableValues } from "../../api/run-verdict";
import { useI18n } from "../../i18n";
import { errorSentence, problemSentence } from "../../i18n/errors";
import { number } from "../../i18n/format";
import { IconButton } from "../../ui/icon-button";
import { SideMark } from "../../ui/side";
import { placeText } from "../parts/run-words";
import styles from "./key-data.module.css";
import { Picture } from "./Picture";
import { ValuesList } from "./ValuesList";
import { shareText } from "./words";

interface Props {
  slug: string;
  data: KeyData;
  table: KeyTable;
  names: Record<"left" | "right", string>;
  row: number;
  onRow: (row: number) => void;
}

/** What the server sends of a row at once. */
const STRETCH = 4096;

/** One table: what is odd about it, its values side by side, and where along a row they differ. */
export function TableDetail({ slug, data, table, names, row, onRow }: Props) {
  const { t } = useI18n();
  const place = placeText({ step: table.step, rank: table.rank, micro_step: table.micro_step, id: table.id }, t);
  return (
    <div className={styles.detail}>
      <h3 className={styles.place}>{place === "" ? data.key : place}</h3>
      <Notes table={table} names={names} />
      {table.evidence === "values" && table.state !== "left_only" && table.state !== "right_only" ? (
        <Values slug={slug} data={data} table={table} names={names} row={row} onRow={onRow} />
      ) : null}
      {table.statistics === null || table.evidence === "values" ? null : <Statistics table={table} names={names} />}
    </div>
  );
}

/** In words what a number would hide: other shapes, NaN, padding, what could not be read. */
function Notes({ table, names }: { table: KeyTable; names: Props["names"] }) {
  const { t, language, format } = useI18n();
  const words = t.loop.key;
  const notes: [string, ReactNode][] = [];
  if (table.state === "left_only" || table.state === "right_only") {
    notes.push(["only", words.onlySide(table.state === "left_only" ? names.left : names.right)]);
  }
  if (table.note !== null) notes.push(["note", words.notes[table.note] ?? table.note]);
  for (const side of ["left", "right"] as const) {
    const problem = table[`${side}_problem`];
    if (problem != null) notes.push([side, `${names[side]}${language === "zh" ? "：" : ": "}${problemSentence(problem, language)}`]);
  }
  if (table.cropped) notes.push(["cropped", words.cropped]);
  if (table.right !== null) notes.push(["aligned", words.aligned(placeText(table.right, t))]);
  if (table.evidence === "statistics") notes.push(["statistics", words.noValues]);
  const [left = 0, right = 0, both = 0] = table.nan ?? [];
  if (left + right > 0) notes.push(["nan", words.nan(format.count(left), format.count(right), format.count(both))]);
  const [leftInf = 0, rightInf = 0] = table.inf ?? [];
  if (leftInf + rightInf > 0) notes.push(["inf", words.inf(format.count(leftInf), format.count(rightInf))]);
  if (table.masked !== null && table.masked.compared !== table.compared) {
    const { compared, same, max_abs: largest } = table.masked;
    const numbers = [words.sameShare(`${shareText(same)}\u00a0%`), words.maxAbs(number(largest))].join(t.common.comma);
    notes.push(["masked", `${words.masked(format.count(compared))} ${numbers}`]);
  }
  if (notes.length === 0) return null;
  return (
    <ul className={styles.notes}>
      {notes.map(([id, text]) => (
        <li key={id}>{text}</li>
      ))}
    </ul>
  );
}

function Statistics({ table, names }: { table: KeyTable; names: Props["names"] }) {
  return (
    <table className={styles.statistics}>
      <thead>
        <tr>
          <td />
          {(["left", "right"] as const).map((side) => (
            <th key={side} scope="col">
              <SideMark side={side} /> {names[side]}
            </th>
          ))}
        </tr>
      </thead>
      <tbody>
        {Object.entries(table.statistics ?? {}).map(([name, [left, right]]) => (
          <tr key={name}>
            <th scope="row">{name}</th>
            <td>{number(left)}</td>
            <td>{number(right)}</td>
          </tr>
        ))}
      </tbody>
    </table>
  );
}

function Values({ slug, data, table, names, row, onRow }: Props) {
  const { t, language } = useI18n();
  const words = t.loop.key;
  const [from, setFrom] = useState(() => stretchOf(row === 0 ? (table.first_mismatch ?? 0) : 0, table));
  const { data: values, error } = useTableValues(slug, data.n, table.t, row, from);
  if (values === undefined) {
    return (
      <p className={styles.message} role={error === null ? "status" : "alert"}>
        {error === null ? words.loading : errorSentence(error, language)}
      </p>
    );
  }
  const change = (next: number) => {
    setFrom(0);
    onRow(next);
  };
  return <Stretch values={values} names={names} row={row} onRow={change} onFrom={setFrom} />;
}

/** Where to begin so that the first difference is among what is sent; it counts over all rows of the table. */
function stretchOf(first: number, { left_shape: shape }: KeyTable): number {
  const length = shape === null || shape.length < 2 ? Number.POSITIVE_INFINITY : shape.slice(1).reduce((all, size) => all * size, 1);
  return first >= length ? 0 : Math.floor(first / STRETCH) * STRETCH;
}

interface StretchProps {
  values: TableValues;
  names: Props["names"];
  row: number;
  onRow: (row: number) => void;
  onFrom: (from: number) => void;
}

function Stretch({ values, names, row, onRow, onFrom }: StretchProps) {
  const { t, format } = useI18n();
  const words = t.loop.key;
  const { rows, rows_of: rowsOf, of, from, kind } = values;
  const held = rows.find((one) => one.row === row) ?? null;
  const end = Math.min(of, from + values.left.length);
  const first = held?.first_mismatch ?? null;
  const [place, setPlace] = useState<number | null>(null);
  // Another row or stretch begins where it first differs.
  // biome-ignore lint/correctness/useExhaustiveDependencies: a move within them is the reader's
  useEffect(() => setPlace(first), [row, from, first]);
  const nextBad = rows.find((one) => one.row > row && one.first_mismatch !== null)?.row ?? null;
  return (
    <>
      {rowsOf > 1 || of > end - from ? (
        <div className={styles.paging}>
          {rowsOf > 1 ? (
            <Pager
              text={words.row(format.count(row + 1), format.count(rowsOf))}
              previous={words.previousRow}
              next={words.nextRow}
              onPrevious={row > 0 ? () => onRow(row - 1) : null}
              onNext={row + 1 < rowsOf ? () => onRow(row + 1) : null}
            />
          ) : null}
          {of > end - from ? (
            <Pager
              text={words.stretch(format.count(from), format.count(end - 1), format.count(of))}
              previous={words.earlier}
              next={words.later}
              onPrevious={from > 0 ? () => onFrom(Math.max(0, from - STRETCH)) : null}
              onNext={end < of ? () => onFrom(from + STRETCH) : null}
            />
          ) : null}
          {first === null && nextBad !== null ? (
            <button type="button" className={styles.jump} onClick={() => onRow(nextBad)}>
              {words.firstDifference}
            </button>
          ) : null}
        </div>
      ) : null}
      <ValuesList values={values} names={names} first={first} valid={held?.valid ?? null} place={place} onPlace={setPlace} />
      {kind === "scalar" || values.left.length < 2 ? null : (
        <Picture values={values} valid={held?.valid ?? null} first={first} place={place} onPlace={setPlace} />
      )}
    </>
  );
}

interface PagerProps {
  text: string;
  previous: string;
  next: string;
  onPrevious: (() => void) | null;
  onNext: (() => void) | null;
}

function Pager({ text, previous, next, onPrevious, onNext }: PagerProps) {
  return (
    <span className={styles.pager}>
      <IconButton label={previous} aria-disabled={onPrevious === null} onClick={() => onPrevious?.()}>
        <ChevronLeft size={14} aria-hidden="true" />
      </IconButton>
      <span>{text}</span>
      <IconButton label={next} aria-disabled={onNext === null} onClick={() => onNext?.()}>
        <ChevronRight size={14} aria-hidden="true" />
      </IconButton>
    </span>
  );
}
