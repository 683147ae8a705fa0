import type { TableValues } from "../../api/run-verdict";
import { useI18n } from "../../i18n";
import { exact, number, signed, signedPercent } from "../../i18n/format";
import { gridCell } from "../../ui/grid-roles";
import { SideMark } from "../../ui/side";
import styles from "./key-data.module.css";
import { WindowedGrid } from "./WindowedGrid";
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

/** One row of a table: position, both values, their difference. Tokens stand as ids. Only what is in sight is on the page. */
export function ValuesList({ values, names, first, valid, place, onPlace }: Props) {
  const { t } = useI18n();
  const words = t.loop.key;
  const { left, right, difference, from: base } = values;
  const tokens = values.kind === "tokens";
  const count = Math.max(left.length, right.length);
  const at = place === null ? 0 : Math.max(0, Math.min(count - 1, place - base));
  const show = (value: (typeof left)[number] | undefined) => (tokens ? tokenText(value ?? null) : number(value ?? null));
  return (
    <WindowedGrid
      label={words.values}
      grid={{ "data-testid": "values", "data-tokens": tokens }}
      rowHeight={22}
      most={7}
      ready={8}
      lead={2} // so that the reader sees where they still agree
      count={count}
      at={at}
      selected={place === null || place < base || place >= base + count ? -1 : at}
      name="value"
      rowClass={styles.valueRow}
      onMove={(index) => onPlace(base + index)}
      head={
        <>
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
        </>
      }
      row={(index) => {
        const position = base + index;
        const [a, b] = [left[index] ?? null, right[index] ?? null];
        const same = sameValue(a, b);
        const padding = valid !== null && position >= valid;
        return {
          key: position,
          data: { "data-same": same, "data-padding": padding, "data-position": position },
          cells: (
            <>
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
            </>
          ),
        };
      }}
    />
  );
}
