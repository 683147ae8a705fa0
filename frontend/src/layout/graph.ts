import { at } from "../model/rows";
import type { VisibleRows } from "../model/visible";

/**
 * Nested boxes for the places of the visible rows, the same on both sides, so that partners stand at one height and links are level. One pass,
 * whatever is open. Units are pixels at 100 %.
 */
export interface GraphLayout {
  readonly length: number;
  readonly top: Float64Array;
  /** Of the whole box, with what is inside. */
  readonly height: Float64Array;
  /** Place of the box around it, −1 outside. */
  readonly around: Int32Array;
  /** Boxes around it. */
  readonly level: Uint8Array;
  /** 1 where boxes are inside. */
  readonly open: Uint8Array;
  readonly total: number;
}

export const BOX = 22;
/** What a box with others inside is called. */
export const HEAD = 24;
/** A fold of layers: its edge shows that others lie below it. */
export const FOLD = 28;
const GAP = 5;
const FOOT = 6;
const MARGIN = 8;
/** Room to each side of a box inside another. */
export const INSET = 10;
/** Deeper boxes get no narrower: their names need the room. */
const MOST_INSETS = 9;

export function graphLayout(view: VisibleRows): GraphLayout {
  const { length, depth, strips } = view;
  const top = new Float64Array(length);
  const height = new Float64Array(length);
  const around = new Int32Array(length).fill(-1);
  const level = new Uint8Array(length);
  const open = new Uint8Array(length);
  const stack: number[] = [];
  let y = MARGIN;
  const close = (to: number) => {
    while (stack.length > 0 && at(depth, stack[stack.length - 1] as number) >= to) {
      const place = stack.pop() as number;
      y += FOOT - GAP;
      height[place] = y - at(top, place);
      y += GAP;
    }
  };
  for (let place = 0; place < length; place += 1) {
    const own = at(depth, place);
    close(own);
    top[place] = y;
    level[place] = Math.min(255, stack.length);
    around[place] = stack[stack.length - 1] ?? -1;
    if (place + 1 < length && at(depth, place + 1) > own) {
      open[place] = 1;
      stack.push(place);
      y += HEAD;
    } else {
      const size = strips.has(place) ? FOLD : BOX;
      height[place] = size;
      y += size + GAP;
    }
  }
  close(0);
  return { length, top, height, around, level, open, total: y - GAP + MARGIN };
}

/** Places whose boxes, or heads, reach into `from` … `to`: those that begin there, after the boxes around the first of them. */
export function placesBetween(layout: GraphLayout, from: number, to: number): readonly number[] {
  const first = lowerBound(layout, from);
  const outer: number[] = [];
  const start = Math.max(0, first - 1);
  for (let place = layout.length === 0 ? -1 : start; place >= 0; place = at(layout.around, place)) outer.push(place);
  const places = outer.reverse();
  for (let place = start + 1; place < layout.length && at(layout.top, place) <= to; place += 1) places.push(place);
  return places;
}

/** The place whose name or box is at a height, −1 between them. */
export function placeAt(layout: GraphLayout, y: number): number {
  const place = lowerBound(layout, y + 1e-9) - 1;
  if (place < 0) return -1;
  const size = at(layout.open, place) === 1 ? HEAD : at(layout.height, place);
  return y <= at(layout.top, place) + size ? place : -1;
}

/** How many places begin above `y`: boxes are in the order of their tops. */
function lowerBound({ top, length }: GraphLayout, y: number): number {
  let low = 0;
  let high = length;
  while (low < high) {
    const middle = (low + high) >> 1;
    if (at(top, middle) < y) low = middle + 1;
    else high = middle;
  }
  return low;
}

/** The panes of the two sides in a width. */
export interface GraphPanes {
  readonly left: number;
  readonly right: number;
  readonly pane: number;
  readonly gutter: number;
}

export function graphPanes(width: number): GraphPanes {
  const gutter = Math.max(36, Math.min(80, width * 0.09));
  const pane = (width - gutter - MARGIN * 2) / 2;
  return { left: MARGIN, right: MARGIN + pane + gutter, pane, gutter };
}

/** Left edge within its pane, and width, of a box so deep. */
export function boxAcross({ pane }: GraphPanes, level: number): { readonly x: number; readonly width: number } {
  const inset = Math.min(level, MOST_INSETS, Math.max(0, Math.floor((pane - 120) / (2 * INSET)))) * INSET;
  return { x: inset, width: pane - 2 * inset };
}

/**
 * The whole graph in so many pixel rows: the worst level of what begins in each, −1 where nothing does. `levelOf` is 0 within noise, 1 … 5 the
 * ramp; an opened box counts by what is inside it.
 */
export function minimap(layout: GraphLayout, rows: number, levelOf: (place: number) => number): Int8Array {
  const worst = new Int8Array(Math.max(0, rows)).fill(-1);
  if (layout.total <= 0) return worst;
  const scale = rows / layout.total;
  for (let place = 0; place < layout.length; place += 1) {
    if (at(layout.open, place) === 1) continue;
    const value = levelOf(place);
    const from = Math.min(rows - 1, Math.floor(at(layout.top, place) * scale));
    const to = Math.min(rows - 1, Math.floor((at(layout.top, place) + at(layout.height, place)) * scale));
    for (let row = from; row <= to; row += 1) if (value > at(worst, row)) worst[row] = value;
  }
  return worst;
}
