import { type PointerEvent, useEffect, useMemo, useRef, useState } from "react";
import type { TableValues } from "../../api/run-verdict";
import { useI18n } from "../../i18n";
import { figure, number } from "../../i18n/format";
import { positionAt, positionBars, positionScale } from "../../layout/positions";
import { paintPositions } from "../../paint/positions";
import { useSize } from "../compare/use-size";
import { useTheme } from "../compare/use-theme";
import styles from "./key-data.module.css";
import { sameValue } from "./words";

interface Props {
  values: TableValues;
  valid: number | null;
  first: number | null;
  place: number | null;
  onPlace: (place: number) => void;
}

const HEIGHT = 104;
const TOKENS_HEIGHT = 44;

/** Where along a row the two sides differ, and by how much: a bar a position on a log axis; of tokens which ones differ. */
export function Picture({ values, valid, first, place, onPlace }: Props) {
  const { t, format } = useI18n();
  const words = t.loop.key;
  const theme = useTheme();
  const box = useRef<HTMLDivElement>(null);
  const canvas = useRef<HTMLCanvasElement>(null);
  const width = useSize(box)?.width ?? 0;
  const [hovered, setHovered] = useState<number | null>(null);
  const tokens = values.kind === "tokens";
  const height = tokens ? TOKENS_HEIGHT : HEIGHT;
  const { from } = values;
  const sizes = useMemo(() => sizesOf(values), [values]);
  const scale = useMemo(() => positionScale(sizes, width, height, tokens), [sizes, width, height, tokens]);
  const bars = useMemo(() => positionBars(scale, sizes), [scale, sizes]);
  const differing = useMemo(() => sizes.reduce((count, size) => count + (size === 0 ? 0 : 1), 0), [sizes]);

  useEffect(() => {
    if (canvas.current === null || width === 0) return;
    const inside = (position: number | null) => (position === null ? null : position - from);
    paintPositions(
      canvas.current,
      {
        width,
        height,
        scale,
        bars,
        from,
        first: inside(first),
        place: inside(place),
        valid: inside(valid),
        padding: words.padding,
        tick: number,
      },
      theme,
    );
  }, [width, height, scale, bars, from, first, place, valid, words.padding, theme]);

  const at = (event: PointerEvent<HTMLCanvasElement>) =>
    positionAt(scale, event.clientX - event.currentTarget.getBoundingClientRect().left);
  const label =
    differing === 0
      ? words.pictureNone(format.count(sizes.length))
      : words.pictureLabel(format.count(differing), format.count(sizes.length), `${first ?? "–"}`);
  const row = format.count(values.row + 1);
  const read = hovered ?? (place === null ? null : place - from);
  return (
    <figure className={styles.picture}>
      <figcaption>
        <b>{tokens || values.kind === "per_token" ? words.picture : words.pictureOther}</b>{" "}
        {tokens ? words.tokensNote(values.key, row) : words.pictureNote(values.key, row)}
        <span className={styles.read} aria-hidden="true">
          {read === null || read < 0 || read >= sizes.length
            ? ""
            : `${from + read}: ${tokens ? `${values.left[read] ?? "–"} | ${values.right[read] ?? "–"}` : number(sizes[read])}`}
        </span>
      </figcaption>
      <div ref={box} className={styles.canvasBox} style={{ height }}>
        <canvas
          ref={canvas}
          role="img"
          aria-label={label}
          onPointerMove={(event) => setHovered(at(event))}
          onPointerLeave={() => setHovered(null)}
          onClick={(event) => onPlace(from + positionAt(scale, event.clientX - event.currentTarget.getBoundingClientRect().left))}
        />
      </div>
    </figure>
  );
}

/** |difference| of each position; Inf where one side has no value, or NaN or Inf that the other has not. Of tokens 1 where they differ. */
function sizesOf({ kind, left, right, difference }: TableValues): Float64Array {
  const sizes = new Float64Array(Math.max(left.length, right.length));
  for (let index = 0; index < sizes.length; index += 1) {
    const [a, b] = [left[index] ?? null, right[index] ?? null];
    if (sameValue(a, b)) continue;
    if (kind === "tokens") {
      sizes[index] = 1;
      continue;
    }
    const plain = figure(difference[index]);
    sizes[index] = plain === null || Number.isNaN(plain) ? Number.POSITIVE_INFINITY : Math.abs(plain);
  }
  return sizes;
}
