import { useMemo, useRef } from "react";
import type { KeyData, KeyDataState, RunVerdict } from "../../api/run-verdict";
import { useI18n } from "../../i18n";
import { useSize } from "../compare/use-size";
import { Breakable } from "./Breakable";
import styles from "./pipeline.module.css";
import { asideText, causeOf, firstStep, keyLines, PROMPTS_ONLY, placeText } from "./run-words";

interface Props {
  verdict: Pick<RunVerdict, "key_data" | "first" | "findings" | "parts">;
  names: Record<"left" | "right", string>;
  /** `n` of the key whose tables are shown. */
  selected: number | null;
  onSelect: (n: number) => void;
}

/** prompts → responses → … → loss: each key with its state, the first that differs marked, what follows from it tied to it. */
export function Pipeline({ verdict, names, selected, onSelect }: Props) {
  const { t, language, format } = useI18n();
  const words = t.loop.pipeline;
  const keys = verdict.key_data;
  const promptsOnly = (verdict.findings ?? []).find(({ code }) => code === PROMPTS_ONLY);
  const box = useRef<HTMLDivElement>(null);
  const width = useSize(box)?.width ?? 0;
  const step = firstStep(keys);
  const groups = useMemo(() => groupsOf(keys), [keys]);
  const whole = keys.every((data) => asideText(data, names, t, format.count) === "");
  const equal = keys.every(({ state }) => state === "equal");
  const aside = !whole
    ? ""
    : equal
      ? words.allEqual(format.count(keys.length))
      : step !== null && verdict.parts.some((part) => part.step !== null && part.step < step)
        ? words.before(`${step}`, format.count(keys.length))
        : "";
  return (
    <section className={styles.section} aria-label={words.title}>
      <header className={styles.header}>
        <h2>{words.title}</h2>
        <span className={styles.note}>{words.note}</span>
        <span className={styles.aside}>{aside}</span>
      </header>
      <div ref={box} className={styles.strip} style={{ "--keys": keys.length } as React.CSSProperties}>
        <div className={styles.groups} aria-hidden="true">
          {groups.map(({ stage, from, count }) => (
            <span key={from} className={styles.group} style={{ gridColumn: `${from + 1} / span ${count}` }} data-named={stage !== null}>
              <span title={stage ?? undefined}>
                <Breakable name={stage ?? ""} />
              </span>
            </span>
          ))}
        </div>
        <ol className={styles.nodes}>
          {keys.map((data, at) => {
            const cause = causeOf(keys, at);
            const { state, detail } = keyLines(data, cause === null ? null : (keys[cause]?.key ?? null), names, t, format.count);
            const first = data.key === verdict.first?.key_data;
            const place = data.first === null ? "" : words.first(placeText(data.first, t));
            const copies = data.copies > 1 ? words.copies(format.count(data.copies)) : "";
            const many = data.state === "consequence" ? words.differOf(format.count(data.counts.differs), format.count(data.tables)) : "";
            const besides = asideText(data, names, t, format.count);
            const more = [first ? words.firstOfAll : "", many, place, copies, besides === detail ? "" : besides]
              .filter(Boolean)
              .join(t.common.comma);
            return (
              <li key={data.n}>
                <button
                  type="button"
                  className={styles.node}
                  data-key={data.key}
                  data-state={data.state}
                  data-first={first}
                  aria-pressed={data.n === selected}
                  title={[data.stage, many, place, besides, copies].filter(Boolean).join(" · ")}
                  onClick={() => onSelect(data.n)}
                >
                  <span className={styles.name}>
                    <KeySign state={data.state} />
                    <b>{data.key}</b>
                  </span>
                  <span className={styles.state}>{state}</span>
                  <span className={styles.detail}>{detail}</span>
                  {more === "" ? null : <span className="visually-hidden">{more}</span>}
                </button>
              </li>
            );
          })}
        </ol>
        <Arrows keys={keys} width={width} />
      </div>
      {promptsOnly === undefined ? null : (
        <p className={styles.caution} role="note">
          {promptsOnly.text[language]}
        </p>
      )}
    </section>
  );
}

/** ✓ equal, ≈ but for padding, ▲ differs, △ a consequence, ∅ not compared, hatched: one side only. */
export function KeySign({ state }: { state: KeyDataState }) {
  if (state === "left_only" || state === "right_only") return <span className={styles.hatch} aria-hidden="true" />;
  return (
    <svg className={styles.sign} data-state={state} width="14" height="14" viewBox="0 0 16 16" fill="none" aria-hidden="true">
      {state === "equal" ? (
        <path d="m2.4 8.6 3.7 3.7 7.6-8.6" stroke="currentcolor" strokeWidth="1.6" />
      ) : state === "padding" ? (
        <path d="M2 6.4c2-2.2 4-2.2 6 0s4 2.2 6 0M2 11.4c2-2.2 4-2.2 6 0s4 2.2 6 0" stroke="currentcolor" strokeWidth="1.5" />
      ) : state === "differs" ? (
        <path d="M8 2.2 14.3 13.4H1.7Z" fill="currentcolor" />
      ) : state === "consequence" ? (
        <path d="M8 3.2 13.6 13H2.4Z" stroke="currentcolor" strokeWidth="1.6" strokeLinejoin="round" />
      ) : (
        <path d="M8 2.5a5.5 5.5 0 1 1 0 11a5.5 5.5 0 0 1 0-11ZM4.1 11.9 11.9 4.1" stroke="currentcolor" strokeWidth="1.5" />
      )}
    </svg>
  );
}

interface Group {
  readonly stage: string | null;
  readonly from: number;
  readonly count: number;
}

/** Neighbours that one stage makes share a bracket. */
function groupsOf(keys: readonly KeyData[]): readonly Group[] {
  const groups: Group[] = [];
  keys.forEach(({ stage }, at) => {
    const last = groups[groups.length - 1];
    if (last !== undefined && stage !== null && last.stage === stage) groups[groups.length - 1] = { ...last, count: last.count + 1 };
    else groups.push({ stage, from: at, count: 1 });
  });
  return groups;
}

const NODE_MIDDLE = 35;
const ARCS_TOP = 70;
const GAP = 26;

/** A line from each key to the next, red where the next follows from it; an arc from further back to each other consequence. */
function Arrows({ keys, width }: { keys: readonly KeyData[]; width: number }) {
  if (width === 0) return null;
  const gap = Math.min(GAP, width * 0.018);
  const node = (width - gap * (keys.length - 1)) / keys.length;
  const left = (at: number) => at * (node + gap);
  const middle = (at: number) => left(at) + node / 2;
  const causes = keys.map((_, at) => causeOf(keys, at));
  const arcs = causes.flatMap((from, at) => (from !== null && from < at - 1 ? [{ from, to: at }] : []));
  return (
    <svg className={styles.arrows} width={width} height={ARCS_TOP + 62} viewBox={`0 0 ${width} ${ARCS_TOP + 62}`} aria-hidden="true">
      {keys.slice(1).map(({ n }, before) => (
        <g key={n} className={causes[before + 1] === before ? styles.follows : styles.leads}>
          <path d={`M${left(before + 1) - gap} ${NODE_MIDDLE}H${left(before + 1) - 5}`} />
          <path className={styles.head} d={`M${left(before + 1) - 1} ${NODE_MIDDLE}l-6 -3v6z`} />
        </g>
      ))}
      {arcs.map(({ from, to }, index) => {
        const depth = ARCS_TOP + 30 + Math.min(26, index * 18);
        const [a, b] = [middle(from), middle(to)];
        const bend = Math.min(90, (b - a) / 2);
        const down = `M${a} ${ARCS_TOP}C${a} ${depth} ${a + bend * 0.6} ${depth} ${a + bend} ${depth}`;
        const up = `H${b - bend}C${b - bend * 0.4} ${depth} ${b} ${depth} ${b} ${ARCS_TOP + 9}`;
        return (
          <g key={keys[to]?.n} className={styles.follows}>
            <path d={down + up} />
            <path className={styles.head} d={`M${b} ${ARCS_TOP + 3}l-3.5 7h7z`} />
          </g>
        );
      })}
    </svg>
  );
}
