import { useRef } from "react";
import type { Drift as DriftLine } from "../../api/run-verdict";
import type { Num } from "../../api/types";
import { type Messages, useI18n } from "../../i18n";
import { figure, number, percent } from "../../i18n/format";
import { driftScale, linePath } from "../../layout/drift";
import { useSize } from "../compare/use-size";
import { Breakable } from "./Breakable";
import styles from "./drift.module.css";
import tables from "./tables.module.css";

const HEIGHT = 34;

interface Props {
  lines: readonly DriftLine[];
  /** Name of the table or stage that parts first. */
  first: { readonly key: string | null; readonly stage: string | null };
}

/** A line a table or stage: whether the difference was there from the first step, grew, or came late, and what that says. */
export function Drift({ lines, first }: Props) {
  const { t, language } = useI18n();
  const words = t.loop.drift;
  const box = useRef<HTMLDivElement>(null);
  const width = useSize(box)?.width ?? 0;
  return (
    <section className={tables.section} aria-label={words.title}>
      <header className={tables.header}>
        <h2>{words.title}</h2>
        <span className={tables.note}>{words.note}</span>
      </header>
      <ul className={styles.lines}>
        {lines.map((line, at) => {
          const name = line.key ?? line.stage ?? "–";
          const marked = line.key !== null ? line.key === first.key : first.key === null && line.stage === first.stage;
          return (
            <li key={`${line.key} ${line.stage}`} className={styles.line} data-first={marked}>
              <span className={styles.name}>
                <Breakable name={name} />
              </span>
              <div ref={at === 0 ? box : undefined} className={styles.plot}>
                <Line line={line} width={width} name={name} />
              </div>
              <span className={styles.largest} title={words.largest(words.measure[line.measure])}>
                {largestText(line, t)}
              </span>
              <span className={styles.text}>{withoutName(line.text[language], name)}</span>
            </li>
          );
        })}
      </ul>
    </section>
  );
}

/** The sentence is written to stand alone and begins with the name, which stands beside it here. */
function withoutName(text: string, name: string): string {
  return text.startsWith(name) ? text.slice(name.length).replace(/^[:：]\s*/, "") : text;
}

function sizeText({ measure }: DriftLine, value: Num | null | undefined): string {
  if (measure === "norm_rel") return percent(value);
  return measure === "differing_tokens" && typeof value === "number" ? `${value}` : number(value);
}

/** A step that differs in what has no size is named by its reason: it is neither 0 nor unknown. */
function textAt(line: DriftLine, at: number, t: Messages): string {
  const reason = reasonAt(line, at);
  const value = line.values[at];
  return reason === undefined || figure(value) ? sizeText(line, value) : t.loop.drift.withoutSize[reason];
}

function reasonAt({ steps, without_size: reasons }: DriftLine, at: number) {
  return reasons?.find(({ step }) => step === steps[at])?.reason;
}

/** Of all steps, wherever it stands: the last may agree again. Nothing is worse than NaN and Inf; a step without a size counts where none has. */
function largestText(line: DriftLine, t: Messages): string {
  const reasons = (line.without_size ?? []).map(({ reason }) => reason);
  if (reasons.includes("nonfinite")) return t.loop.drift.withoutSize.nonfinite;
  const largest = Math.max(...line.values.map((value) => figure(value) ?? 0));
  return largest > 0 || reasons[0] === undefined ? sizeText(line, largest) : t.loop.drift.withoutSize[reasons[0]];
}

function Line({ line, width, name }: { line: DriftLine; width: number; name: string }) {
  const { t } = useI18n();
  const { steps } = line;
  const values = line.values.map((value, at) => (reasonAt(line, at) === "nonfinite" ? Number.NaN : figure(value)));
  const scale = driftScale(steps, values, width, HEIGHT);
  const [begin, end, largest] = [textAt(line, 0, t), textAt(line, values.length - 1, t), largestText(line, t)];
  const ends = t.loop.drift.line(name, begin, end);
  const label = largest === begin || largest === end ? ends : t.loop.drift.lineLargest(ends, largest);
  const { path, dots } = linePath(scale, steps, values);
  return (
    <svg width={width} height={HEIGHT + 12} viewBox={`0 0 ${width} ${HEIGHT + 12}`} role="img" aria-label={label}>
      <title>
        {steps
          .map((step, at) => `${t.loop.place.step(`${step}`)}: ${textAt(line, at, t)}`)
          .slice(0, 40)
          .join("\n")}
      </title>
      <path className={styles.axis} d={`M0 ${HEIGHT - 0.5}H${width}`} />
      <path className={styles.stroke} d={path} />
      <path className={styles.dots} d={dots} />
      <text className={styles.tick} x="0" y={HEIGHT + 10}>
        {steps[0]}
      </text>
      {steps.length > 1 ? (
        <text className={styles.tick} x={width} y={HEIGHT + 10} textAnchor="end">
          {steps[steps.length - 1]}
        </text>
      ) : null}
    </svg>
  );
}
