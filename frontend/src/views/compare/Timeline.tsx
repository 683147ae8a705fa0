import { X } from "lucide-react";
import { type PointerEvent, useLayoutEffect, useMemo, useRef, useState } from "react";
import type { Origin } from "../../api/types";
import { useI18n } from "../../i18n";
import { percent } from "../../i18n/format";
import {
  backwardStart,
  dotAt,
  labelledTicks,
  largestDifference,
  layerTicks,
  noiseBand,
  RailScale,
  railDots,
  rowOfDot,
} from "../../layout/timeline";
import { at, NO_ROW, type Row } from "../../model/rows";
import { moduleOf } from "../../model/tree";
import { paintRail, type RailScene } from "../../paint/rail";
import styles from "./timeline.module.css";
import { useSize } from "./use-size";
import { useTheme } from "./use-theme";
import { placeName } from "./words";
import type { TreeIndex } from "./workbench-state";

interface Props {
  index: TreeIndex | null;
  origins: readonly Origin[];
  ignored: readonly number[];
  selected: Row;
  brush: readonly [number, number] | null;
  sides: { readonly left: string; readonly right: string };
  compact: boolean;
  /** It has the page to itself: the plot takes what height there is. */
  tall?: boolean;
  onSelect: (row: Row) => void;
  onBrush: (brush: readonly [number, number] | null) => void;
}

/** The title ends before this; a label that would begin there moves it to the right. */
const TITLE_END = 500;
const BLOCK = 134;
const BLOCK_GAP = 32;
/** A press that moves less is a click. */
const DRAG = 4;

/** Differences in execution order: accumulation and a jump look different at a glance. A click selects, a drag filters the tree. */
export function Timeline(props: Props) {
  const { index, origins, selected, brush, compact, onSelect, onBrush } = props;
  const { t } = useI18n();
  const words = t.compare.timeline;
  const frame = useRef<HTMLDivElement>(null);
  const canvas = useRef<HTMLCanvasElement>(null);
  const size = useSize(frame);
  const theme = useTheme();
  const [hovered, setHovered] = useState(-1);
  const [drag, setDrag] = useState<{ from: number; to: number } | null>(null);
  const geometry = useGeometry(index, size?.width ?? 0, size?.height ?? 0, compact, props.sides);
  const scene = useScene(props, geometry, size?.width ?? 0, size?.height ?? 0, drag);

  useLayoutEffect(() => {
    if (canvas.current !== null && scene !== null) paintRail(canvas.current, scene, theme);
  }, [scene, theme]);

  const place = (event: PointerEvent) => {
    const box = (event.currentTarget as Element).getBoundingClientRect();
    return { x: event.clientX - box.left, y: event.clientY - box.top };
  };
  const onPointerMove = (event: PointerEvent) => {
    if (geometry === null) return;
    const { x, y } = place(event);
    if (drag !== null) setDrag({ ...drag, to: x });
    else setHovered(dotAt(geometry.dots, x, y, 8));
  };
  const onPointerDown = (event: PointerEvent) => {
    if (geometry === null || event.button !== 0) return;
    const { x } = place(event);
    const { left, right } = geometry.scale.area;
    if (x < left - 8 || x > right + 8) return;
    event.currentTarget.setPointerCapture(event.pointerId);
    setDrag({ from: x, to: x });
  };
  const onPointerUp = (event: PointerEvent) => {
    if (geometry === null || drag === null) return;
    setDrag(null);
    const { x, y } = place(event);
    if (Math.abs(x - drag.from) >= DRAG) {
      const [from, to] = [Math.min(drag.from, x), Math.max(drag.from, x)];
      onBrush([geometry.scale.order(from), geometry.scale.order(to)]);
      return;
    }
    const hit = dotAt(geometry.dots, x, y, compact ? 16 : 10);
    if (hit >= 0) onSelect(rowOfDot(geometry.dots, hit));
    else if (brush !== null) onBrush(null);
  };
  const compared = index?.tree.compared ?? 0;
  return (
    <section className={styles.timeline} data-tall={props.tall} aria-label={words.label}>
      <h2 className={styles.title} data-aside={crowded(scene) ? "" : undefined}>
        {compact ? words.titleShort : words.title}
      </h2>
      {brush === null ? null : (
        <button type="button" className={styles.clear} onClick={() => onBrush(null)}>
          <X size={11} aria-hidden="true" /> {words.clear}
        </button>
      )}
      <div
        ref={frame}
        className={styles.frame}
        role="img"
        aria-label={words.summary(String(compared), String(origins.length))}
        onPointerMove={onPointerMove}
        onPointerDown={onPointerDown}
        onPointerUp={onPointerUp}
        onPointerCancel={() => setDrag(null)}
        onPointerLeave={() => setHovered(-1)}
        data-hit={hovered >= 0 ? "" : undefined}
        data-testid="timeline"
      >
        <canvas ref={canvas} className={styles.canvas} />
      </div>
      {hovered >= 0 && geometry !== null && index !== null && drag === null && hovered < geometry.dots.count ? (
        <Tip index={index} row={rowOfDot(geometry.dots, hovered)} x={at(geometry.dots.x, hovered)} width={size?.width ?? 0} />
      ) : null}
      <span className="visually-hidden">
        {selected === NO_ROW ? "" : words.order(String(index === null ? 0 : at(index.tree.order, selected)))}
      </span>
    </section>
  );
}

/** Whether the first origin's label stands where the title is. */
function crowded(scene: RailScene | null): boolean {
  const first = scene?.origins.find((origin) => origin.first);
  return first !== undefined && first.x < TITLE_END;
}

interface Geometry {
  readonly scale: RailScale;
  readonly dots: ReturnType<typeof railDots>;
  readonly band: ReturnType<typeof noiseBand>;
  readonly ticks: ReturnType<typeof layerTicks>;
  readonly labels: ReturnType<typeof labelledTicks>;
  readonly backward: number;
  readonly missing: { readonly left: number; readonly right: number; readonly side: string } | null;
}

/** Where everything stands: worked out when the tree or the width changes, not when a row is selected. */
function useGeometry(index: TreeIndex | null, width: number, height: number, compact: boolean, sides: Props["sides"]): Geometry | null {
  return useMemo(() => {
    if (index === null || width === 0 || height === 0) return null;
    const { tree, execution } = index;
    const oneSided = tree.backward.left !== tree.backward.right && !compact;
    const left = compact ? 46 : 64;
    const right = width - 16 - (oneSided ? BLOCK + BLOCK_GAP : 0);
    const scale = new RailScale({ left, right, top: 22, bottom: height - 19 }, tree.compared, largestDifference(tree));
    const ticks = layerTicks(tree);
    return {
      scale,
      dots: railDots(tree, execution, scale),
      band: noiseBand(tree, execution, 160),
      ticks,
      labels: labelledTicks(ticks, scale, 30),
      backward: backwardStart(tree),
      missing: oneSided ? { left: width - 16 - BLOCK, right: width - 16, side: tree.backward.left ? sides.right : sides.left } : null,
    };
  }, [index, width, height, compact, sides]);
}

function useScene(
  props: Props,
  geometry: Geometry | null,
  width: number,
  height: number,
  drag: { from: number; to: number } | null,
): RailScene | null {
  const { index, origins, ignored, selected, brush, compact } = props;
  const { t } = useI18n();
  return useMemo(() => {
    if (geometry === null || index === null) return null;
    const { scale } = geometry;
    const { tree } = index;
    const words = t.compare;
    const place = (order: number) => scale.x(order);
    return {
      width,
      height,
      ...geometry,
      origins: origins.flatMap((origin, number) => {
        const row = index.origins[number] ?? NO_ROW;
        if (row === NO_ROW) return [];
        const difference = at(tree.difference, row);
        const first = number === 0;
        const ordinal = words.origins.ordinal(number + 1);
        return [
          {
            x: place(at(tree.order, row) >= 0 ? at(tree.order, row) : origin.order),
            y: Number.isNaN(difference) ? scale.area.top : scale.y(difference),
            label: first
              ? compact
                ? (placeName(origin.module).split(" · ")[0] as string)
                : placeName(origin.module)
              : compact
                ? ordinal
                : words.origins.railLabel(ordinal, words.verdict.confidenceWords[origin.confidence]),
            first,
            ignored: ignored.includes(number),
          },
        ];
      }),
      selectedX: selected !== NO_ROW && at(tree.order, selected) >= 0 ? place(at(tree.order, selected)) : null,
      brush:
        drag !== null && Math.abs(drag.to - drag.from) >= DRAG
          ? [Math.min(drag.from, drag.to), Math.max(drag.from, drag.to)]
          : brush === null
            ? null
            : [place(brush[0]), place(brush[1])],
      words: {
        noise: compact ? words.timeline.noiseShort : words.timeline.noise,
        backward: words.timeline.backward,
        missing: geometry.missing === null ? [] : words.timeline.missing(geometry.missing.side).split("\n"),
      },
      compact,
      percent: (value: number) => `${value * 100} %`,
    };
  }, [geometry, index, origins, ignored, selected, brush, compact, drag, width, height, t]);
}

function Tip({ index, row, x, width }: { index: TreeIndex; row: Row; x: number; width: number }) {
  const { t } = useI18n();
  const words = t.compare.timeline;
  const { tree } = index;
  return (
    <div className={styles.tip} style={x > width - 260 ? { right: width - x + 10 } : { left: x + 12 }} aria-hidden="true">
      <b>{placeName(moduleOf(tree, row))}</b>
      <span>
        {percent(at(tree.difference, row))} · {words.floor(percent(at(tree.floor, row)))} · {words.order(String(at(tree.order, row)))}
      </span>
    </div>
  );
}
