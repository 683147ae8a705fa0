import { useLayoutEffect, useRef, useState } from "react";
import type { MeasuredTensor, NodeSlot, TensorProfile, UnmeasuredTensor } from "../../api/types";
import { useI18n } from "../../i18n";
import { problemSentence } from "../../i18n/errors";
import { exact, figure, number, percent } from "../../i18n/format";
import { paintHistogram, paintProfile } from "../../paint/profile";
import type { Theme } from "../../paint/theme";
import { type SlotColumns, slotName } from "./SlotTable";
import styles from "./tensors.module.css";
import { useSize } from "./use-size";
import { useTheme } from "./use-theme";

interface Props {
  slots: readonly NodeSlot[];
  columns: SlotColumns;
}

type Measured = NodeSlot & { readonly tensor: MeasuredTensor };

function isMeasured(slot: NodeSlot): slot is Measured {
  return slot.tensor?.state === "compared";
}

/** What statistics can only suggest: how far the elements of each slot are apart, and where in the tensor that is. */
export function Tensors({ slots, columns }: Props) {
  const { t } = useI18n();
  const words = t.compare.detail.tensor;
  const measured = slots.filter(isMeasured);
  const unmeasured = slots.filter((slot) => slot.tensor !== null && slot.tensor !== undefined && !isMeasured(slot));
  const [chosen, setChosen] = useState<number | null>(null);
  if (measured.length === 0 && unmeasured.length === 0) return null;
  const place = chosen ?? foremost(measured);
  const shown = measured[place];
  return (
    <section className={styles.tensors} data-testid="tensors">
      <h3>{words.title}</h3>
      {measured.length === 0 ? null : <MetricsTable measured={measured} columns={columns} place={place} onChoose={setChosen} />}
      {unmeasured.map((slot) => (
        <p key={`${slot.group}/${slot.slot}/${slot.order}`} className={styles.note}>
          <b>{slotName(slot)}</b> <Reason tensor={slot.tensor as UnmeasuredTensor} />
        </p>
      ))}
      {shown === undefined ? null : (
        <Where key={place} tensor={shown.tensor} name={slotName(shown)} weight={shown.group.startsWith("parameters")} />
      )}
    </section>
  );
}

/** The slot that is opened first: what differs, outputs before inputs, the furthest apart first. */
function foremost(measured: readonly Measured[]): number {
  const weight = ({ state, group, tensor }: Measured) =>
    (state === "first" ? 4e9 : state === "differs" ? 2e9 : 0) +
    (group === "output" ? 1e9 : 0) +
    Math.min(1e8, figure(tensor.relative_l2) ?? 0);
  let best = 0;
  measured.forEach((slot, place) => {
    if (weight(slot) > weight(measured[best] as Measured)) best = place;
  });
  return best;
}

function MetricsTable(props: { measured: readonly Measured[]; columns: SlotColumns; place: number; onChoose: (place: number) => void }) {
  const { measured, columns, place, onChoose } = props;
  const { t } = useI18n();
  const words = t.compare.detail.tensor;
  return (
    <table className={styles.table}>
      <thead>
        <tr>
          <th scope="col">{words.slot}</th>
          <th scope="col">{words.identical}</th>
          <th scope="col">{words.relative}</th>
          {columns >= 5 ? <th scope="col">{words.largest}</th> : null}
          {columns >= 6 ? <th scope="col">{words.cosine}</th> : null}
        </tr>
      </thead>
      <tbody>
        {measured.map((slot, own) => (
          <tr key={`${slot.group}/${slot.slot}/${slot.order}`} data-chosen={own === place ? "" : undefined}>
            <th scope="row">
              <button type="button" aria-pressed={own === place} title={words.choose(slotName(slot))} onClick={() => onChoose(own)}>
                {slotName(slot)}
              </button>
            </th>
            <td>{percent(slot.tensor.identical / slot.tensor.elements)}</td>
            <td title={exact(slot.tensor.relative_l2)} className={slot.grade === "diverged" ? styles.over : undefined}>
              {percent(slot.tensor.relative_l2)}
            </td>
            {columns >= 5 ? <td title={exact(slot.tensor.max_absolute)}>{number(slot.tensor.max_absolute)}</td> : null}
            {columns >= 6 ? <td title={exact(slot.tensor.cosine)}>{cosine(slot.tensor.cosine)}</td> : null}
          </tr>
        ))}
      </tbody>
    </table>
  );
}

/** Cosines crowd below 1: six digits tell them apart, and what is below 1 never reads 1. */
function cosine(value: MeasuredTensor["cosine"]): string {
  const plain = figure(value);
  if (plain === null || !Number.isFinite(plain)) return number(value);
  return plain < 1 && plain > 0.9999995 ? "< 1" : plain.toFixed(6).replace("-", "\u2212");
}

function Reason({ tensor }: { tensor: UnmeasuredTensor }) {
  const { t, language } = useI18n();
  const words = t.compare.detail.tensor;
  if (tensor.state !== "broken" || tensor.fault === null) return words[tensor.state === "broken" ? "missing" : tensor.state];
  return words.broken(tensor.fault.file, problemSentence(tensor.fault, language));
}

function Where({ tensor, name, weight }: { tensor: MeasuredTensor; name: string; weight: boolean }) {
  const { t, format } = useI18n();
  const words = t.compare.detail.tensor;
  const frame = useRef<HTMLDivElement>(null);
  const width = useSize(frame)?.width ?? 0;
  const theme = useTheme();
  const layout = words.layouts[tensor.layout];
  const nonfinite = [...tensor.nan, ...tensor.infinite].some((count) => count > 0);
  return (
    <div ref={frame} className={styles.where}>
      <p className={styles.note}>
        <b>{name}</b> {words.elements(format.count(tensor.elements))} ·{" "}
        {words.within(percent(tensor.within_thousandth), percent(tensor.within_five_thousandths))} ·{" "}
        {words.largestRelative(percent(tensor.max_relative))}
        {layout === "" ? null : ` · ${layout}`}
        {nonfinite ? ` · ${words.nonfinite(tensor.nan.join(" / "), tensor.infinite.join(" / "))}` : null}
        {tensor.misplaced > 0 ? ` · ${words.misplaced(format.count(tensor.misplaced))}` : null}
      </p>
      {tensor.ulps === null ? null : <Distances ulps={tensor.ulps} width={width} theme={theme} />}
      {tensor.identical === tensor.elements ? null : (
        <>
          <AlongAxis profile={tensor.rows} title={words.rows(format.count(tensor.rows.length), weight)} width={width} theme={theme} />
          <AlongAxis
            profile={tensor.columns}
            title={words.columns(format.count(tensor.columns.length), weight)}
            width={width}
            theme={theme}
          />
          <Worst tensor={tensor} />
        </>
      )}
    </div>
  );
}

interface Drawn {
  width: number;
  theme: Theme;
}

const HEIGHT = 44;

/** 1024 → 1k: thirteen labels share one line. */
function short(edge: number): string {
  return edge >= 1024 ? `${edge / 1024}k` : String(edge);
}

function Distances({ ulps, width, theme }: Drawn & { ulps: NonNullable<MeasuredTensor["ulps"]> }) {
  const { t } = useI18n();
  const words = t.compare.detail.tensor;
  const canvas = useRef<HTMLCanvasElement>(null);
  useLayoutEffect(() => {
    if (canvas.current !== null && width > 0) paintHistogram(canvas.current, ulps.counts, width, HEIGHT, theme);
  }, [ulps, width, theme]);
  const total = ulps.counts.reduce((sum, count) => sum + count, 0);
  const edges = [...ulps.edges.map(short), words.beyond(short(ulps.edges.at(-1) ?? 0))];
  return (
    <figure className={styles.figure}>
      <figcaption>{words.ulps(ulps.of)}</figcaption>
      <canvas ref={canvas} role="img" aria-label={words.ulpsSummary(ulps.of, percent((ulps.counts[0] ?? 0) / Math.max(1, total)))} />
      <div className={styles.edges} aria-hidden="true">
        {edges.map((edge, place) => (
          <span key={edge} title={`${edge}: ${ulps.counts[place] ?? 0}`}>
            {edge}
          </span>
        ))}
      </div>
    </figure>
  );
}

function AlongAxis({ profile, title, width, theme }: Drawn & { profile: TensorProfile; title: string }) {
  const { t } = useI18n();
  const words = t.compare.detail.tensor;
  const canvas = useRef<HTMLCanvasElement>(null);
  const values = profile.values.map((value) => figure(value) ?? 0);
  useLayoutEffect(() => {
    const plain = profile.values.map((value) => figure(value) ?? 0);
    if (canvas.current !== null && width > 0) paintProfile(canvas.current, plain, width, HEIGHT, theme);
  }, [profile, width, theme]);
  const peak = values.indexOf(Math.max(...values));
  const stretch = Math.max(1, Math.ceil(profile.length / Math.max(1, values.length)));
  const first = peak * stretch;
  const place = stretch === 1 ? String(first) : `${first}–${Math.min(profile.length, first + stretch) - 1}`;
  const summary = words.peak(place, percent(values[peak] ?? 0));
  return (
    <figure className={styles.figure}>
      <figcaption>
        {title} <span className={styles.peak}>{summary}</span>
      </figcaption>
      <canvas ref={canvas} role="img" aria-label={`${title}: ${summary}`} />
    </figure>
  );
}

function Worst({ tensor }: { tensor: MeasuredTensor }) {
  const { t } = useI18n();
  const words = t.compare.detail.tensor;
  if (tensor.worst.length === 0) return null;
  return (
    <figure className={styles.figure}>
      <figcaption>{words.worst}</figcaption>
      <ul className={styles.worst}>
        {tensor.worst.slice(0, 4).map((entry) => (
          <li key={`${entry.row}/${entry.column}`}>
            <span>{words.place(String(entry.row), String(entry.column))}</span>
            <span title={`${exact(entry.left)} · ${exact(entry.right)}`}>
              {number(entry.left)} · {number(entry.right)}
            </span>
          </li>
        ))}
      </ul>
    </figure>
  );
}
