import { type KeyboardEvent, useEffect, useRef, useState } from "react";
import type { TableValues } from "../../api/run-verdict";
import { useI18n } from "../../i18n";
import { exact, number, signed, signedPercent } from "../../i18n/format";
import { gridCell, gridRow, rowGroup } from "../../ui/grid-roles";
import { SideMark } from "../../ui/side";
import styles from "./key-data.module.css";
import { relativeOf, sameValue, tokenText } from "./words";

interface Props {
  values: TableValues;
  names: Record<"left" | "right", string>;
  /** Index in the row of the first value that differs. */
  first: number | null;
  /** Positions from here on are padding. */
  valid: number | null;
  /** The position that is brought into sight. */
  place: number | null;
  onPlace: (place: number) => void;
}

const ROW = 22;
const MOST = 7;
const STEP = 8;

/** One row of a table: position, both values, their difference. Tokens stand as ids. Only what is in sight is on the page. */
export function ValuesList({ values, names, first, valid, place, onPlace }: Props) {
  const { t } = useI18n();
  const words = t.loop.key;
  const scroller = useRef<HTMLDivElement>(null);
  const [top, setTop] = useState(0);
  const { left, right, difference, from: base } = values;
  const tokens = values.kind === "tokens";
  const count = Math.max(left.length, right.length);
  const from = Math.max(0, top - STEP);
  const to = Math.min(count, top + MOST + 2 * STEP);
  const at = place === null ? 0 : Math.max(0, Math.min(count - 1, place - base));

  // Two before it, so that the reader sees where they still agree.
  useEffect(() => {
    const element = scroller.current;
    if (element === null || place === null) return;
    const sight = element.clientHeight - ROW;
    if (at * ROW < element.scrollTop || (at + 1) * ROW > element.scrollTop + sight) element.scrollTop = Math.max(0, (at - 2) * ROW);
  }, [at, place]);

  const onKeyDown = (event: KeyboardEvent) => {
    if (event.ctrlKey || event.metaKey || event.altKey || event.shiftKey) return;
    const moves: Record<string, number> = {
      ArrowDown: at + 1,
      ArrowUp: at - 1,
      PageDown: at + MOST,
      PageUp: at - MOST,
      Home: 0,
      End: count - 1,
    };
    const next = moves[event.key];
    if (next === undefined) return;
    event.preventDefault();
    onPlace(base + Math.max(0, Math.min(count - 1, next)));
  };
  const idOf = (index: number) => `value-${base + index}`;
  const show = (value: (typeof left)[number] | undefined) => (tokens ? tokenText(value ?? null) : number(value ?? null));
  return (
    // biome-ignore lint/a11y/useSemanticElements: rows that are on the page only in sight cannot be those of a table
    <div
      ref={scroller}
      className={styles.values}
      data-testid="values"
      data-tokens={tokens}
      role="grid"
      aria-rowcount={count + 1}
      tabIndex={0}
      aria-label={words.values}
      aria-activedescendant={at >= from && at < to ? idOf(at) : undefined}
      style={{ maxHeight: ROW * (MOST + 1) + 4 }}
      onKeyDown={onKeyDown}
      onClick={({ target }) => {
        const row = (target as Element).closest<HTMLElement>("[data-position]");
        if (row !== null) onPlace(Number(row.dataset.position));
      }}
      onScroll={({ currentTarget }) => setTop(Math.floor(currentTarget.scrollTop / ROW / STEP) * STEP)}
    >
      <div {...rowGroup} className={styles.head}>
        <div {...gridRow(1)} className={styles.valueRow}>
          <span {...gridCell("columnheader")}>{tokens || values.kind === "per_token" ? words.token : words.index}</span>
          {(["left", "right"] as const).map((side) => (
            <span key={side} {...gridCell("columnheader")} title={names[side]}>
              <SideMark side={side} /> {names[side]}
            </span>
          ))}
          {tokens ? null : (
            <>
              <span {...gridCell("columnheader")}>{words.difference}</span>
              <span {...gridCell("columnheader")}>{words.relative}</span>
            </>
          )}
        </div>
      </div>
      <div {...rowGroup} style={{ height: count * ROW, position: "relative" }}>
        {Array.from({ length: Math.max(0, to - from) }, (_, offset) => {
          const index = from + offset;
          const position = base + index;
          const [a, b] = [left[index] ?? null, right[index] ?? null];
          const same = sameValue(a, b);
          const padding = valid !== null && position >= valid;
          return (
            <div
              key={position}
              id={idOf(index)}
              {...gridRow(index + 2, place === position)}
              className={styles.valueRow}
              data-same={same}
              data-padding={padding}
              style={{ top: index * ROW }}
              data-position={position}
            >
              <span {...gridCell("gridcell")}>
                {position}
                {position === first ? " " : null}
                {position === first ? <b className={styles.firstWord}>{words.first}</b> : null}
                {padding ? <i className={styles.padding}>{words.padding}</i> : null}
              </span>
              <span {...gridCell("gridcell")} title={exact(a)}>
                {show(a)}
              </span>
              <span {...gridCell("gridcell")} title={exact(b)}>
                {show(b)}
              </span>
              {tokens ? null : (
                <>
                  <span {...gridCell("gridcell")} title={exact(difference[index])}>
                    {same ? "0" : signed(difference[index])}
                  </span>
                  <span {...gridCell("gridcell")} className={styles.relative}>
                    {same ? "0" : signedPercent(relativeOf(a, b))}
                  </span>
                </>
              )}
            </div>
          );
        })}
      </div>
    </div>
  );
}
