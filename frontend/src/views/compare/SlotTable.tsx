import { Fragment, useMemo, useState } from "react";
import type { NodeSlot, SlotChecksum, SlotStatistic } from "../../api/types";
import { useI18n } from "../../i18n";
import { exact, figure, number, percent, signed, signedPercent, ulps } from "../../i18n/format";
import { shortRecord } from "./Residual";
import { SideHeading } from "./SideHeading";
import styles from "./slots.module.css";
import { dtypeName, isDirty } from "./words";

/** So many agreeing slots stand open; a module with thirty inputs says the rest in one line. */
const OPEN_AGREEING = 4;

/** Columns by the room there is: the absolute difference goes first, then the relative one. */
export type SlotColumns = 4 | 5 | 6;

export function slotColumns(width: number): SlotColumns {
  return width >= 470 ? 6 : width >= 370 ? 5 : 4;
}

interface Props {
  slots: readonly NodeSlot[];
  sides: { readonly left: string; readonly right: string };
  columns: SlotColumns;
  /** Records of the row itself: a partner that is none of them lives in another module. */
  own: ReadonlySet<string>;
  /** Only an origin's first differing slot is where the difference begins; everywhere else it is handed on. */
  origin: boolean;
}

/** Both sides and what lies between them: four significant digits, every digit on hover. Red and bold only where the grade says so. */
export function SlotTable({ slots, sides, columns, own, origin }: Props) {
  const { t, format } = useI18n();
  const words = t.compare.detail;
  const [all, setAll] = useState(false);
  const agreeing = slots.filter((slot) => slot.state === "agrees" && slot.group === "input");
  const hidden = all || agreeing.length <= OPEN_AGREEING ? new Set<NodeSlot>() : new Set(agreeing.slice(OPEN_AGREEING - 1));
  const ordered = useMemo(() => inReadingOrder(slots), [slots]);
  const precisions = new Set(slots.flatMap(({ precision }) => (precision === null ? [] : [precision])));
  // Named once in the heading where it is one; slots of several precisions each say their own beside their dtype.
  const precision = precisions.size === 1 ? [...precisions][0] : undefined;
  return (
    <table className={`${styles.table} ${styles[`columns${columns}`] ?? ""}`} data-testid="slots">
      <thead>
        <tr>
          <th scope="col">
            <span className="visually-hidden">{words.columns.statistic}</span>
          </th>
          <SideHeading side="left" name={sides.left} />
          <SideHeading side="right" name={sides.right} />
          {columns >= 6 ? <th scope="col">{words.columns.difference}</th> : null}
          {columns >= 5 ? <th scope="col">{words.columns.relative}</th> : null}
          <th scope="col">{precision === undefined || columns < 6 ? words.columns.ulp : words.ulpOf(precision)}</th>
        </tr>
      </thead>
      <tbody>
        {ordered
          .filter((slot) => !hidden.has(slot))
          .map((slot) => (
            <Fragment key={`${slot.group}/${slot.slot}/${slot.left[0]?.record ?? ""}/${slot.right[0]?.record ?? ""}`}>
              <GroupRow slot={slot} columns={columns} origin={origin} own={own} sides={sides} />
              {(isOneSided(slot) ? [] : slot.statistics).map((statistic) => (
                <StatisticRow key={statistic.name} statistic={statistic} slot={slot} columns={columns} />
              ))}
              {isOneSided(slot) || !slot.checksum ? null : <ChecksumRow checksum={slot.checksum} columns={columns} />}
            </Fragment>
          ))}
        {hidden.size > 0 ? (
          <tr className={styles.group}>
            <th colSpan={columns} scope="rowgroup">
              {words.slotsFolded(hidden.size, format.count(hidden.size))}{" "}
              <button type="button" className={styles.show} onClick={() => setAll(true)}>
                {words.showSlots}
              </button>
            </th>
          </tr>
        ) : null}
      </tbody>
    </table>
  );
}

function isOneSided(slot: NodeSlot): boolean {
  return slot.state === "left_only" || slot.state === "right_only";
}

/** Groups as they come; within one, what has a partner before what has none. */
function inReadingOrder(slots: readonly NodeSlot[]): NodeSlot[] {
  const groups = [...new Set(slots.map((slot) => slot.group))];
  return [...slots].sort((a, b) => groups.indexOf(a.group) - groups.indexOf(b.group) || Number(isOneSided(a)) - Number(isOneSided(b)));
}

/** `parameters.weight` is called `weight`: the group says the rest. */
export function slotName(slot: NodeSlot): string {
  return slot.slot.replace(/^parameters(_grad)?\./, "");
}

interface GroupProps {
  slot: NodeSlot;
  own: ReadonlySet<string>;
  columns: SlotColumns;
  origin: boolean;
  sides: Props["sides"];
}

function GroupRow({ slot, columns, own, origin, sides }: GroupProps) {
  const { t } = useI18n();
  const words = t.compare.detail;
  const dirty = isDirty(slot);
  const place = slot.left[0] ?? slot.right[0];
  const shapes = [...new Set([...slot.left, ...slot.right].map((own) => shapeText(own.shape)))].slice(0, 2).join(" · ");
  const gradient = slot.group === "parameters_grad" ? ` ${words.groups.parameters_grad}` : "";
  const partner = slot.elsewhere ? elsewherePlace(slot, own) : null;
  const name = (
    <span className={styles.groupLine}>
      <b>
        {slotName(slot)}
        {gradient}
      </b>
      <span className={styles.shape}>
        {shapes} {dtypeName(place?.dtype)}
        {slot.precision !== null && slot.precision !== dtypeName(place?.dtype) && slot.statistics.some((own) => own.ulps !== null)
          ? ` · ${words.ulpOf(slot.precision)}`
          : null}
      </span>
      {partner === null ? null : (
        <span className={styles.partner} title={partner.title}>
          ↔ {partner.text}
        </span>
      )}
    </span>
  );
  if (isOneSided(slot)) {
    const side = slot.state === "left_only" ? "left" : "right";
    const norm = slot.statistics.find((statistic) => statistic.name === "norm" || statistic.name === "value");
    const value = norm?.[side];
    return (
      <tr className={`${styles.group} ${styles.single}`}>
        <th colSpan={columns} scope="rowgroup">
          <span className={styles.oneSided}>
            {name}
            <span className={styles.reason}>
              {value === undefined || value === null || norm === undefined ? "" : `${words.names[norm.name]} ${scalarText(value)} · `}
              {words.only(sides[side])}
            </span>
          </span>
        </th>
      </tr>
    );
  }
  const state = slot.state === "first" && !origin ? "differs" : (slot.state as "agrees" | "differs" | "first" | "not_comparable");
  return (
    <tr className={styles.group}>
      <th colSpan={columns - 1} scope="rowgroup">
        {name}
      </th>
      <td className={styles.stateCell}>
        <span className={`${styles.state} ${dirty ? styles.dirty : ""} ${state === "first" ? styles.first : ""}`}>
          {slot.state === "agrees" && slot.grade === "equal" ? words.stateEqual : words.states[state]}
        </span>
      </td>
    </tr>
  );
}

function scalarText(value: NonNullable<SlotStatistic["left"]>): string {
  return typeof value === "number" || value === "NaN" || value === "Infinity" || value === "-Infinity" ? number(value) : value;
}

/** Where the partner lives that is in another module: `layers.3.input_layernorm output.1`. */
function elsewherePlace(slot: NodeSlot, own: ReadonlySet<string>): { text: string; title: string } | null {
  const place = [...slot.right, ...slot.left].find(({ record }) => !own.has(record));
  return place === undefined ? null : { text: `${shortRecord(place.record)} ${place.slot}`, title: `${place.record} ${place.slot}` };
}

function shapeText(shape: readonly number[] | null | undefined): string {
  return shape === null || shape === undefined ? "" : `[${shape.join(", ")}]`;
}

function StatisticRow({ statistic, slot, columns }: { statistic: SlotStatistic; slot: NodeSlot; columns: SlotColumns }) {
  const { t } = useI18n();
  const words = t.compare.detail;
  const over = statistic.over && isDirty(slot);
  return (
    <tr className={styles.statistic}>
      <th scope="row">{words.names[statistic.name]}</th>
      <Value value={statistic.left} over={over} />
      <Value value={statistic.right} over={over} />
      {columns >= 6 ? (
        <td className={zero(statistic.difference)} title={exact(statistic.difference)}>
          {signed(statistic.difference)}
        </td>
      ) : null}
      {columns >= 5 ? (
        <td className={over && statistic.relative !== null ? styles.over : zero(statistic.relative)} title={relativeTitle(statistic)}>
          {statistic.of === "rms" && figure(statistic.relative) !== 0 && statistic.relative !== null
            ? words.ofRms(percent(absolute(statistic)))
            : figure(statistic.relative) === 0
              ? "0"
              : signedPercent(statistic.relative)}
        </td>
      ) : null}
      <td className={over && statistic.ulps !== null ? styles.overUlps : zero(statistic.ulps)} title={exact(statistic.ulps)}>
        {steps(statistic.ulps)}
      </td>
    </tr>
  );
}

/** Says equal or not where statistics may be blind; how far apart it cannot say. */
function ChecksumRow({ checksum, columns }: { checksum: SlotChecksum; columns: SlotColumns }) {
  const { t } = useI18n();
  const words = t.compare.detail;
  const differs = checksum.state === "differs";
  return (
    <tr className={styles.statistic}>
      <th scope="row">{words.checksum}</th>
      <td className={styles.text} title={checksum.left ?? undefined}>
        {checksum.left ?? "–"}
      </td>
      <td className={styles.text} title={checksum.right ?? undefined}>
        {checksum.right ?? "–"}
      </td>
      <td colSpan={columns - 3} className={differs ? styles.over : undefined}>
        {words.checksumStates[checksum.state]}
      </td>
    </tr>
  );
}

/** On a phone's first page: of each slot the statistic that says most, two where the grade counts several. */
export function WorstStatistics({ slots, sides }: Omit<Props, "columns" | "own" | "origin">) {
  const { t } = useI18n();
  const words = t.compare.detail;
  const lines = slots.flatMap((slot) => worstOf(slot).map((statistic) => ({ slot, statistic })));
  if (lines.length === 0) return null;
  return (
    <table className={`${styles.table} ${styles.worst}`}>
      <caption>
        <b>{words.title}</b> {words.worstOfEach}
      </caption>
      <thead>
        <tr>
          <th scope="col">
            <span className="visually-hidden">{words.columns.statistic}</span>
          </th>
          <SideHeading side="left" name={sides.left} />
          <SideHeading side="right" name={sides.right} />
          <th scope="col">{words.columns.ulp}</th>
        </tr>
      </thead>
      <tbody>
        {lines.map(({ slot, statistic }) => (
          <tr key={`${slot.group}/${slot.slot}/${slot.order}/${statistic.name}`} className={styles.statistic}>
            <th scope="row" title={`${slotName(slot)} ${words.names[statistic.name]}`}>
              {isDirty(slot) ? <b>{slotName(slot)}</b> : slotName(slot)} {words.names[statistic.name]}
            </th>
            <Value value={statistic.left} over={statistic.over && isDirty(slot)} />
            <Value value={statistic.right} over={statistic.over && isDirty(slot)} />
            <td className={statistic.over && isDirty(slot) && statistic.ulps !== null ? styles.overUlps : zero(statistic.ulps)}>
              {steps(statistic.ulps)}
            </td>
          </tr>
        ))}
      </tbody>
    </table>
  );
}

function worstOf(slot: NodeSlot): SlotStatistic[] {
  const paired = slot.statistics.filter((statistic) => statistic.left !== null && statistic.right !== null);
  const size = (statistic: SlotStatistic) => Math.abs(figure(statistic.ulps) ?? figure(statistic.relative) ?? 0);
  const byWeight = [...paired].sort((a, b) => Number(b.over) - Number(a.over) || size(b) - size(a));
  return byWeight.slice(0, isDirty(slot) ? 2 : 1);
}

/** Steps that fill more than a column are a magnitude: +1.6e13. */
function steps(value: SlotStatistic["ulps"]): string {
  const plain = figure(value);
  if (plain === null || !Number.isFinite(plain) || Math.abs(plain) < 1e6) return ulps(value);
  return `${plain > 0 ? "+" : "−"}${Math.abs(plain).toExponential(1).replace("e+", "e")}`;
}

function absolute(statistic: SlotStatistic): number | null {
  const relative = figure(statistic.relative);
  return relative === null ? null : Math.abs(relative);
}

function relativeTitle(statistic: SlotStatistic): string {
  const relative = figure(statistic.relative);
  return relative === null || !Number.isFinite(relative) ? "" : `${exact(relative * 100)} %`;
}

function zero(value: SlotStatistic["difference"]): string {
  const plain = figure(value);
  return plain === null || plain === 0 ? (styles.zero ?? "") : "";
}

/** NaN or Inf where the other side has a number is the finding itself, so it is marked where it stands. */
function Value({ value, over = false }: { value: SlotStatistic["left"]; over?: boolean }) {
  const numeric = typeof value === "number" || value === "NaN" || value === "Infinity" || value === "-Infinity" || value === null;
  if (!numeric) {
    return (
      <td className={styles.text} title={value}>
        {value}
      </td>
    );
  }
  return (
    <td title={exact(value)} className={over && typeof value === "string" ? styles.overUlps : undefined}>
      {number(value)}
    </td>
  );
}
