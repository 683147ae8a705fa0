import { type KeyboardEvent, useEffect, useMemo, useRef, useState } from "react";
import type { RunPart } from "../../api/types";
import { useI18n } from "../../i18n";
import { PHONE, useMedia } from "../compare/use-media";
import { useSize } from "../compare/use-size";
import { isOneSided, matrixOf, neighbourPlace, type PartsMatrix, placeOfPart } from "./matrix";
import { PartSign } from "./PartSign";
import styles from "./parts-grid.module.css";
import { cellName, partName, partReason } from "./words";

interface Props {
  parts: readonly RunPart[];
  /** `n` of the first divergence. */
  first: number | null;
  /** `n` of the cell that takes the focus. */
  entry: number | null;
  /** The reader comes back from that part. */
  returned: boolean;
  names: Record<"left" | "right", string>;
  onOpen: (n: number) => void;
}

const LABEL_WIDTH = 224;

/** Stage × step, one cell a part. One stop of the Tab key; arrows move, Enter opens. */
export function PartsGrid({ parts, first, entry, returned, names, onOpen }: Props) {
  const { t } = useI18n();
  const matrix = useMemo(() => matrixOf(parts), [parts]);
  const box = useRef<HTMLDivElement>(null);
  const width = useSize(box)?.width ?? 0;
  const phone = useMedia(PHONE);
  const staged = matrix.stages.length > 1 || matrix.stages[0] !== null;
  const shape = shapeOf(matrix, width, phone, staged);
  const [current, setCurrent] = useState(entry);
  const [hovered, setHovered] = useState<number | null>(null);
  const table = useRef<HTMLTableElement>(null);
  const cellOf = (n: number | null) => table.current?.querySelector<HTMLElement>(`[data-part="${n}"]`) ?? null;

  // Only where nothing else has it: a reader who came by keyboard to somewhere else is not taken away. Not before the width is known, since
  // the cells take their places by it.
  const measured = width > 0;
  useEffect(() => {
    if (!measured || document.activeElement !== document.body) return;
    const cell = table.current?.querySelector<HTMLElement>(`[data-part="${entry}"]`);
    cell?.focus({ preventScroll: true });
    const scroller = box.current;
    if (cell == null || scroller === null) return;
    scroller.scrollLeft += cell.getBoundingClientRect().left - scroller.getBoundingClientRect().left - scroller.clientWidth / 2;
    // Whoever comes for the first time reads the verdict above, however far down the cell is.
    if (returned) cell.scrollIntoView({ block: "nearest" });
  }, [entry, measured, returned]);

  const onKeyDown = (event: KeyboardEvent) => {
    if (event.ctrlKey || event.metaKey || event.altKey || event.shiftKey || current === null) return;
    const from = placeOfPart(matrix, current);
    const to = from === null ? null : neighbourPlace(matrix, from, event.key, shape.perBlock);
    if (!/^(Arrow|Home|End)/.test(event.key)) return;
    event.preventDefault();
    const part = to === null ? null : (matrix.cells[to.row]?.[to.column] ?? null);
    if (part === null) return;
    setCurrent(part.n);
    cellOf(part.n)?.focus();
  };

  const shown = parts.find(({ n }) => n === (hovered ?? current)) ?? null;
  const blocks = Array.from({ length: Math.ceil(matrix.steps.length / shape.perBlock) }, (_, block) => block * shape.perBlock);
  return (
    <section className={styles.section} aria-label={staged ? t.parts.matrix : t.parts.matrixOneRow}>
      <div ref={box} className={styles.scroller}>
        <table
          ref={table}
          // biome-ignore lint/a11y/noNoninteractiveElementToInteractiveRole: a table whose cells are walked with arrow keys is a grid
          role="grid"
          aria-label={staged ? t.parts.matrix : t.parts.matrixOneRow}
          className={styles.table}
          data-testid="parts"
          data-size={shape.size}
          style={{ "--cell": `${shape.cell}px` } as React.CSSProperties}
          onKeyDown={onKeyDown}
          onMouseLeave={() => setHovered(null)}
        >
          {blocks.map((start) => (
            <tbody key={start}>
              <tr>
                <th scope="col" className={styles.corner}>
                  {t.parts.steps}
                </th>
                {matrix.steps.slice(start, start + shape.perBlock).map((step) => (
                  <th
                    key={step}
                    scope="col"
                    className={styles.step}
                    data-first={parts.some((part) => part.n === first && part.step === step)}
                  >
                    {step ?? "–"}
                  </th>
                ))}
              </tr>
              {matrix.stages.map((stage, row) => (
                <tr key={stage}>
                  <th scope="row" className={styles.stage} title={stage ?? undefined}>
                    <span>{staged ? (stage ?? t.parts.noStage) : ""}</span>
                  </th>
                  {(matrix.cells[row] ?? []).slice(start, start + shape.perBlock).map((part, column) => (
                    <td key={matrix.steps[start + column]} className={styles.cell}>
                      {part === null ? null : (
                        <button
                          type="button"
                          className={styles.part}
                          data-part={part.n}
                          data-verdict={part.verdict}
                          data-first={part.n === first}
                          aria-label={cellName(part, part.n === first, names, t)}
                          aria-disabled={isOneSided(part) || undefined}
                          tabIndex={part.n === current ? 0 : -1}
                          onFocus={() => setCurrent(part.n)}
                          onMouseEnter={() => setHovered(part.n)}
                          onClick={() => (isOneSided(part) ? setCurrent(part.n) : onOpen(part.n))}
                        >
                          {isOneSided(part) ? null : <PartSign verdict={part.verdict} first={part.n === first} size={shape.sign} />}
                        </button>
                      )}
                    </td>
                  ))}
                </tr>
              ))}
            </tbody>
          ))}
        </table>
      </div>
      {shown === null ? null : <Readout part={shown} first={shown.n === first} names={names} />}
    </section>
  );
}

/** The cell under the pointer, else the one that arrows stand on, in words. */
function Readout({ part, first, names }: { part: RunPart; first: boolean; names: Props["names"] }) {
  const { t } = useI18n();
  const { where, what } = partReason(part, names, t);
  return (
    <p className={styles.readout} aria-hidden="true">
      <PartSign verdict={part.verdict} first={first} />
      <b>{partName(part, t)}</b>
      <span className={part.verdict === "diverged" ? styles.bad : undefined}>{first ? t.parts.first : t.parts.verdicts[part.verdict]}</span>
      {where === "" ? null : <b>{where}</b>}
      {what === "" ? null : <span className={styles.what}>{what}</span>}
    </p>
  );
}

interface Shape {
  /** Width of a cell in px. */
  readonly cell: number;
  readonly size: "roomy" | "even" | "dense";
  readonly sign: number;
  /** Steps beside one another. */
  readonly perBlock: number;
}

/** Few parts get room, many are kept small; what does not fit goes into blocks below, on a phone with stages into a row that scrolls. */
export function shapeOf({ stages, steps }: PartsMatrix, width: number, phone: boolean, staged: boolean): Shape {
  const digits = Math.max(1, ...steps.map((step) => `${step ?? ""}`.length));
  const size = steps.length <= 12 ? "roomy" : steps.length <= 36 ? "even" : "dense";
  const wanted = phone ? 48 : { roomy: 56, even: 34, dense: 26 }[size];
  const cell = Math.max(wanted, digits * 7 + 8);
  const label = !staged ? (phone ? 0 : 48) : LABEL_WIDTH;
  const perBlock = width === 0 || (phone && stages.length > 1) ? steps.length : Math.floor((width - label - 32) / cell);
  return { cell, size, sign: size === "dense" ? 13 : 15, perBlock: Math.max(1, Math.min(steps.length, perBlock)) };
}
