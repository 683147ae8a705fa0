import { useMemo, useRef } from "react";
import type { LayerRow, PartVerdict } from "../../api/types";
import { useI18n } from "../../i18n";
import { exact, figure, number, percent, ulps } from "../../i18n/format";
import { at, NO_ROW, type Row } from "../../model/rows";
import { byName } from "./by-name";
import styles from "./layers.module.css";
import { RoleGlyph } from "./RoleGlyph";
import { SideHeading } from "./SideHeading";
import { useSize } from "./use-size";
import { layerRows, type TreeIndex } from "./workbench-state";

interface Props {
  verdict: PartVerdict;
  index: TreeIndex | null;
  selected: Row;
  sides: { readonly left: string; readonly right: string };
  onSelect: (row: Row) => void;
}

/** One line a layer: both norms, the number that pairing by name would give (struck through), the one that was used, on one log axis. */
export function LayersTable({ verdict, index, selected, sides, onSelect }: Props) {
  const { t } = useI18n();
  const words = t.compare.layers;
  const rows = useMemo(() => (index === null ? new Map<number, Row>() : layerRows(index.tree)), [index]);
  const residual = verdict.layers.some((layer) => layer.compared.startsWith("residual"));
  const named = verdict.layers.some((layer) => byName(layer) !== null);
  const slot = verdict.layers.map((layer) => byName(layer)?.slot).find((name) => name !== undefined) ?? words.byName;
  const frame = useRef<HTMLDivElement>(null);
  const shape = tableShape(useSize(frame)?.width ?? 806, named);
  const floor = useMemo(() => widestFloor(index, rows), [index, rows]);
  const place = (value: number) => axisTo(value, named ? 1.6 : 0.5) * shape.plot;
  const ticks = (named ? [0.001, 0.01, 0.1, 1] : [0.001, 0.01, 0.1]).filter((_, at) => shape.plot >= 160 || at % 2 === 1);
  const byNameColumns = (shape.byNameNorm ? 1 : 0) + (named ? 1 : 0);
  return (
    <div ref={frame} className={styles.frame} data-testid="layers">
      <table className={styles.table} aria-label={words.label}>
        <colgroup>
          <col style={{ width: 28 }} />
          <col />
          <col style={{ width: shape.norm }} />
          <col style={{ width: shape.norm }} />
          {shape.byNameNorm ? <col style={{ width: 78 }} /> : null}
          {named ? <col style={{ width: 68 }} /> : null}
          {shape.plot > 0 ? <col style={{ width: shape.plot + 24 }} /> : null}
          <col style={{ width: 78 }} />
          {shape.ulps ? <col style={{ width: 66 }} /> : null}
        </colgroup>
        <thead>
          <tr>
            <td colSpan={2} />
            <th colSpan={2} scope="colgroup">
              {residual ? words.norm : words.normPlain}
            </th>
            {byNameColumns > 0 ? (
              <th colSpan={byNameColumns} scope="colgroup">
                {byNameColumns > 1 ? words.byName : words.byNameDot}
              </th>
            ) : null}
            {shape.plot > 0 ? (
              <td className={styles.plot}>
                <span className={styles.axis} aria-hidden="true">
                  {ticks.map((tick) => (
                    <span key={tick} style={{ left: place(tick) }}>
                      {tick * 100} %
                    </span>
                  ))}
                </span>
              </td>
            ) : null}
            <td colSpan={shape.ulps ? 2 : 1} />
          </tr>
          <tr>
            <td />
            <th scope="col" className={styles.name}>
              {words.layer}
            </th>
            <SideHeading side="left" name={sides.left} />
            <SideHeading side="right" name={sides.right} />
            {shape.byNameNorm ? <th scope="col">{slot}</th> : null}
            {named ? <th scope="col">{words.difference}</th> : null}
            {shape.plot > 0 ? (
              <td className={`${styles.plot} ${styles.keys}`}>
                <i className={styles.used} /> {residual ? words.usedDot : words.plainDot}
                {named && shape.plot >= 160 ? (
                  <>
                    {" "}
                    <i /> {words.byNameDot}
                  </>
                ) : null}
              </td>
            ) : null}
            <th scope="col">{words.difference}</th>
            {shape.ulps ? <th scope="col">{words.ulps}</th> : null}
          </tr>
        </thead>
        <tbody>
          {verdict.layers.map((layer) => (
            <LayerLine
              key={`${layer.index}-${layer.left}`}
              layer={layer}
              named={named}
              row={rows.get(layer.index) ?? NO_ROW}
              selected={selected}
              shape={shape}
              floor={place(floor)}
              place={place}
              onSelect={onSelect}
            />
          ))}
        </tbody>
      </table>
    </div>
  );
}

/** What the width has room for; `plot` 0 = no dots. */
interface TableShape {
  readonly norm: number;
  readonly byNameNorm: boolean;
  readonly plot: number;
  readonly ulps: boolean;
}

function tableShape(width: number, named: boolean): TableShape {
  const wide = width >= 740;
  const norm = wide ? 88 : width >= 480 ? 78 : 66;
  const taken = 28 + (wide ? 104 : 74) + 2 * norm + (named ? 68 : 0) + (named && wide ? 78 : 0) + 78 + (wide ? 66 : 0) + 24;
  const room = width - taken;
  return { norm, byNameNorm: named && wide, plot: room < 90 ? 0 : Math.min(260, room), ulps: wide };
}

interface LineProps {
  layer: LayerRow;
  named: boolean;
  row: Row;
  selected: Row;
  shape: TableShape;
  floor: number;
  place: (value: number) => number;
  onSelect: (row: Row) => void;
}

function LayerLine({ layer, named, row, selected, shape, floor, place, onSelect }: LineProps) {
  const { t } = useI18n();
  const { plot } = shape;
  const rejected = byName(layer);
  const used = figure(layer.norm_rel);
  const byNameSize = figure(rejected?.norm_rel);
  const bad = layer.grade === "diverged";
  // Only a by-name number that would have alarmed is struck through: 0.4 % rejects itself to nobody.
  const alarming = byNameSize !== null && byNameSize > 0.01 && byNameSize > 3 * (used ?? 0);
  const usedX = place(used ?? 0);
  const otherX = place(byNameSize ?? 0);
  const chosen = row !== NO_ROW && row === selected;
  return (
    <tr className={chosen ? styles.selected : undefined} onClick={() => row !== NO_ROW && onSelect(row)} title={layer.compared}>
      <td className={styles.glyph}>
        <RoleGlyph name={bad ? "inherited" : layer.grade === "incomparable" ? "notcomparable" : "healed"} size={12} />
      </td>
      <th scope="row" className={styles.name}>
        <button type="button" aria-pressed={chosen} onClick={() => row !== NO_ROW && onSelect(row)}>
          layers.{layer.index}
        </button>
        <span className="visually-hidden">, {t.compare.grades[layer.grade]}</span>
      </th>
      <td title={exact(layer.left_norm)}>{number(layer.left_norm)}</td>
      <td title={exact(layer.right_norm)}>{number(layer.right_norm)}</td>
      {shape.byNameNorm ? (
        <td className={styles.muted} title={exact(rejected?.norm)}>
          {rejected === null ? "" : number(rejected.norm)}
        </td>
      ) : null}
      {named ? (
        <td className={styles.muted}>{byNameSize === null ? "" : alarming ? <s>{percent(byNameSize)}</s> : percent(byNameSize)}</td>
      ) : null}
      {plot > 0 ? (
        <td className={styles.plot}>
          <svg width={plot + 8} height="22" viewBox={`0 0 ${plot + 8} 22`} aria-hidden="true">
            <rect x="0" y="0" width={floor + 4} height="22" className={styles.ground} />
            {byNameSize !== null && Math.abs(otherX - usedX) > 7 ? (
              <path d={`M${usedX + 8} 11H${otherX - 0.5}`} className={styles.link} />
            ) : null}
            {byNameSize === null || Math.abs(otherX - usedX) < 1.5 ? null : (
              <circle cx={otherX + 4} cy="11" r="3.2" className={styles.open} />
            )}
            <circle cx={usedX + 4} cy="11" r="3.5" className={bad ? styles.badDot : styles.dot} />
          </svg>
        </td>
      ) : null}
      <td className={bad ? styles.bad : undefined}>{percent(layer.norm_rel)}</td>
      {shape.ulps ? <td className={styles.ulps}>{layer.ulps === null ? "–" : `${ulps(layer.ulps).replace("+", "")} ulp`}</td> : null}
    </tr>
  );
}

function widestFloor(index: TreeIndex | null, rows: ReadonlyMap<number, Row>): number {
  let widest = 0;
  if (index !== null) for (const row of rows.values()) widest = Math.max(widest, at(index.tree.floor, row));
  return widest;
}

/** The bar's axis, with an end of its own: a number by name goes far beyond 50 %. */
function axisTo(value: number, top: number): number {
  const size = Math.abs(value);
  if (!(size > 0)) return 0;
  const low = Math.log10(0.0007);
  return Math.min(1, Math.max(0, (Math.log10(size) - low) / (Math.log10(top) - low)));
}
