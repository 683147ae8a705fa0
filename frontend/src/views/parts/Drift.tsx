import { useRef } from "react";
import type { Drift as DriftLine } from "../../api/run-verdict";
import { useI18n } from "../../i18n";
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
              <span className={styles.last} title={words.measure[line.measure]}>
                {textAt(line, line.values.length - 1)}
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

function textAt({ measure, values }: DriftLine, at: number): string {
  return measure === "norm_rel" ? percent(values[at]) : number(values[at]);
}

function Line({ line, width, name }: { line: DriftLine; width: number; name: string }) {
  const { t } = useI18n();
  const { steps } = line;
  const values = line.values.map(figure);
  const scale = driftScale(steps, values, width, HEIGHT);
  const label = t.loop.drift.line(name, textAt(line, 0), textAt(line, values.length - 1));
  const { path, dots } = linePath(scale, steps, values);
  return (
    <svg width={width} height={HEIGHT + 12} viewBox={`0 0 ${width} ${HEIGHT + 12}`} role="img" aria-label={label}>
      <title>
        {steps
          .map((step, at) => `${t.loop.place.step(`${step}`)}: ${textAt(line, at)}`)
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
