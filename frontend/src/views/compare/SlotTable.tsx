import { Fragment, useState } from "react";
import type { NodeSlot, SlotStatistic } from "../../api/types";
import { useI18n } from "../../i18n";
import { exact, figure, number, percent, signed, signedPercent, ulps } from "../../i18n/format";
import { SideMark } from "../../ui/side";
import styles from "./slots.module.css";
import { dtypeName, isDirty } from "./words";

/** So many agreeing slots stand open; a module with thirty inputs says the rest in one line. */
const OPEN_AGREEING = 4;

/** Both sides and what lies between them: four significant digits, every digit on hover. Red and bold only where the grade says so. */
export function SlotTable({ slots, sides }: { slots: readonly NodeSlot[]; sides: { readonly left: string; readonly right: string } }) {
  const { t, format } = useI18n();
  const words = t.compare.detail;
  const [all, setAll] = useState(false);
  const agreeing = slots.filter((slot) => slot.state === "agrees" && slot.group === "input");
  const hidden = all || agreeing.length <= OPEN_AGREEING ? new Set<NodeSlot>() : new Set(agreeing.slice(OPEN_AGREEING - 1));
  const dtype = dtypeName(slots.find((slot) => slot.left[0]?.dtype != null)?.left[0]?.dtype);
  return (
    <table className={styles.table} data-testid="slots">
      <thead>
        <tr>
          <th scope="col">
            <span className="visually-hidden">{words.columns.statistic}</span>
          </th>
          <th scope="col">
            <span className={styles.side}>
              <SideMark side="left" /> {sides.left}
            </span>
          </th>
          <th scope="col">
            <span className={styles.side}>
              <SideMark side="right" /> {sides.right}
            </span>
          </th>
          <th scope="col" className={styles.plain}>
            {words.columns.difference}
          </th>
          <th scope="col">{words.columns.relative}</th>
          <th scope="col">{dtype === "" ? words.columns.ulp : words.ulpOf(dtype)}</th>
        </tr>
      </thead>
      <tbody>
        {slots
          .filter((slot) => !hidden.has(slot))
          .map((slot) => (
            <Fragment key={`${slot.group}/${slot.slot}/${slot.left[0]?.record ?? ""}/${slot.right[0]?.record ?? ""}`}>
              <GroupRow slot={slot} />
              {slot.statistics.map((statistic) => (
                <StatisticRow key={statistic.name} statistic={statistic} slot={slot} />
              ))}
            </Fragment>
          ))}
        {hidden.size > 0 ? (
          <tr className={styles.group}>
            <th colSpan={6} scope="rowgroup">
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

/** `parameters.weight` is called `weight`: the group says the rest. */
export function slotName(slot: NodeSlot): string {
  return slot.slot.replace(/^parameters(_grad)?\./, "");
}

function GroupRow({ slot }: { slot: NodeSlot }) {
  const { t, language } = useI18n();
  const words = t.compare.detail;
  const dirty = isDirty(slot);
  const place = slot.left[0] ?? slot.right[0];
  const other = slot.right[0];
  const shape = shapeText(place?.shape);
  const shapes =
    other !== undefined && shapeText(other.shape) !== shape && slot.left[0] !== undefined ? `${shape} · ${shapeText(other.shape)}` : shape;
  const gradient = slot.group === "parameters_grad" ? ` ${words.groups.parameters_grad}` : "";
  const oneSided = slot.state === "left_only" || slot.state === "right_only" || slot.state === "not_comparable";
  return (
    <tr className={styles.group}>
      <th colSpan={oneSided ? 6 : 4} scope="rowgroup">
        <span className={styles.groupLine}>
          <b>
            {slotName(slot)}
            {gradient}
          </b>
          <span className={styles.shape}>
            {shapes} {dtypeName(place?.dtype)}
          </span>
          {oneSided ? (
            <span className={styles.reason}>
              {words.states[slot.state]}
              {slot.reason.text[language] === "" ? null : `: ${slot.reason.text[language]}`}
            </span>
          ) : null}
        </span>
      </th>
      {oneSided ? null : (
        <td colSpan={2} className={`${styles.state} ${dirty ? styles.dirty : ""} ${slot.state === "first" ? styles.first : ""}`}>
          {slot.state === "agrees" && slot.grade === "equal" ? words.stateEqual : words.states[slot.state]}
        </td>
      )}
    </tr>
  );
}

function shapeText(shape: readonly number[] | null | undefined): string {
  return shape === null || shape === undefined ? "" : `[${shape.join(", ")}]`;
}

function StatisticRow({ statistic, slot }: { statistic: SlotStatistic; slot: NodeSlot }) {
  const { t } = useI18n();
  const words = t.compare.detail;
  const over = statistic.over && isDirty(slot);
  return (
    <tr className={styles.statistic}>
      <th scope="row">{words.names[statistic.name]}</th>
      <Value value={statistic.left} />
      <Value value={statistic.right} />
      <td className={`${styles.plain} ${zero(statistic.difference)}`} title={exact(statistic.difference)}>
        {signed(statistic.difference)}
      </td>
      <td className={over ? styles.over : zero(statistic.relative)} title={relativeTitle(statistic)}>
        {statistic.of === "rms" && figure(statistic.relative) !== 0 && statistic.relative !== null
          ? words.ofRms(percent(absolute(statistic)))
          : figure(statistic.relative) === 0
            ? "0"
            : signedPercent(statistic.relative)}
      </td>
      <td className={over ? styles.overUlps : zero(statistic.ulps)}>{ulps(statistic.ulps)}</td>
    </tr>
  );
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

function Value({ value }: { value: SlotStatistic["left"] }) {
  const numeric = typeof value === "number" || value === "NaN" || value === "Infinity" || value === "-Infinity" || value === null;
  if (!numeric) {
    return (
      <td className={styles.text} title={value}>
        {value}
      </td>
    );
  }
  // tabIndex-free: the full value is the title, and selecting the cell copies what is seen.
  return (
    <td title={exact(value)} data-full={exact(value)}>
      {number(value)}
    </td>
  );
}
