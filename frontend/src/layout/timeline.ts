import { at, DIRECTION, GRADE, ROLE, type Row } from "../model/rows";
import type { Tree } from "../model/tree";
import type { ExecutionOrder } from "../model/walk";

/** Where the timeline draws: the plot's edges, y downwards. */
export interface RailArea {
  readonly left: number;
  readonly right: number;
  readonly top: number;
  readonly bottom: number;
}

export const SHAPE = { dot: 0, dirty: 1, amplified: 2, origin: 3 } as const;

/** What is left to draw after overlapping marks were thinned, by x. */
export interface RailDots {
  readonly count: number;
  readonly x: Float32Array;
  readonly y: Float32Array;
  readonly row: Int32Array;
  readonly shape: Uint8Array;
}

const BOTTOM_VALUE = 0.0007;

/** Log scale from 0.07 % to the largest difference there is (12 % at least, 100 % at most). */
export class RailScale {
  readonly area: RailArea;
  readonly compared: number;
  readonly #logTop: number;
  readonly #logBottom = Math.log10(BOTTOM_VALUE);

  constructor(area: RailArea, compared: number, largest: number) {
    this.area = area;
    this.compared = compared;
    this.#logTop = Math.log10(Math.min(1, Math.max(0.12, Number.isFinite(largest) ? largest * 1.25 : 1)));
  }

  x(order: number): number {
    const { left, right } = this.area;
    return this.compared <= 1 ? left : left + ((right - left) * order) / (this.compared - 1);
  }

  /** Nearest order to a place on the page, within the plot. */
  order(x: number): number {
    const { left, right } = this.area;
    const share = (Math.min(right, Math.max(left, x)) - left) / Math.max(1, right - left);
    return Math.round(share * Math.max(0, this.compared - 1));
  }

  y(difference: number): number {
    const { top, bottom } = this.area;
    const size = Math.abs(difference);
    if (size === Number.POSITIVE_INFINITY) return top;
    if (!(size > BOTTOM_VALUE)) return bottom;
    return bottom - (bottom - top) * Math.min(1, (Math.log10(size) - this.#logBottom) / (this.#logTop - this.#logBottom));
  }

  /** Of 0.1, 1, 10, 100 %, those on the axis. */
  ticks(): number[] {
    return [0.001, 0.01, 0.1, 1].filter((value) => Math.log10(value) <= this.#logTop + 1e-9);
  }
}

export function largestDifference(tree: Tree): number {
  let largest = 0;
  for (let row = 0; row < tree.rows; row += 1) {
    const size = at(tree.difference, row);
    if (size > largest && size < Number.POSITIVE_INFINITY) largest = size;
  }
  return largest;
}

export function shapeOf(tree: Tree, row: number): number {
  const role = at(tree.role, row);
  if (role === ROLE.origin) return SHAPE.origin;
  if (role === ROLE.amplified) return SHAPE.amplified;
  if (role === ROLE.inherited || at(tree.grade, row) === GRADE.diverged) return SHAPE.dirty;
  return SHAPE.dot;
}

/**
 * One mark a compared row, less those that would lie on another of the same shape: dots on a 1 px raster, triangles on a 5 px one, origins
 * never. 100k rows leave a few thousand marks whatever they hold.
 */
export function railDots(tree: Tree, execution: ExecutionOrder, scale: RailScale): RailDots {
  const { left, right, top, bottom } = scale.area;
  const width = Math.ceil(right - left) + 2;
  const height = Math.ceil(bottom - top) + 2;
  const fine = new Uint8Array(width * height);
  const coarse = new Uint8Array(Math.ceil(width / 5 + 1) * Math.ceil(height / 5 + 1));
  const coarseWidth = Math.ceil(width / 5 + 1);
  const rows = execution.rows;
  let capacity = 1024;
  let x = new Float32Array(capacity);
  let y = new Float32Array(capacity);
  let row = new Int32Array(capacity);
  let shape = new Uint8Array(capacity);
  let count = 0;
  for (let index = 0; index < rows.length; index += 1) {
    const current = at(rows, index);
    const kind = shapeOf(tree, current);
    const size = at(tree.difference, current);
    if (Number.isNaN(size) && kind === SHAPE.dot) continue;
    const px = scale.x(at(tree.order, current));
    // What has no number but is bad (NaN on one side) stands at the top.
    const py = Number.isNaN(size) ? top : scale.y(size);
    const dx = Math.round(px - left);
    const dy = Math.round(py - top);
    if (kind === SHAPE.dot) {
      const cell = dy * width + dx;
      if (fine[cell] === 1) continue;
      fine[cell] = 1;
    } else if (kind !== SHAPE.origin) {
      const cell = Math.floor(dy / 5) * coarseWidth + Math.floor(dx / 5);
      if (coarse[cell] === 1) continue;
      coarse[cell] = 1;
    }
    if (count === capacity) {
      capacity *= 2;
      x = grown(x, new Float32Array(capacity));
      y = grown(y, new Float32Array(capacity));
      row = grown(row, new Int32Array(capacity));
      shape = grown(shape, new Uint8Array(capacity));
    }
    x[count] = px;
    y[count] = py;
    row[count] = current;
    shape[count] = kind;
    count += 1;
  }
  return { count, x: x.subarray(0, count), y: y.subarray(0, count), row: row.subarray(0, count), shape: shape.subarray(0, count) };
}

function grown<T extends Float32Array | Int32Array | Uint8Array>(from: T, to: T): T {
  to.set(from as never);
  return to;
}

/** The mark under the pointer: nearest within `reach` pixels, an origin before a triangle before a dot. −1 = none. */
export function dotAt(dots: RailDots, x: number, y: number, reach: number): number {
  let low = 0;
  let high = dots.count;
  while (low < high) {
    const middle = (low + high) >> 1;
    if (at(dots.x, middle) < x - reach) low = middle + 1;
    else high = middle;
  }
  let best = -1;
  let bestScore = Number.POSITIVE_INFINITY;
  for (let index = low; index < dots.count && at(dots.x, index) <= x + reach; index += 1) {
    const distance = Math.hypot(at(dots.x, index) - x, at(dots.y, index) - y);
    if (distance > reach) continue;
    const score = distance - 3 * Math.min(2, at(dots.shape, index));
    if (score < bestScore) {
      bestScore = score;
      best = index;
    }
  }
  return best;
}

export interface LayerTick {
  readonly layer: number;
  readonly order: number;
}

/** Where each layer's forward begins in execution order; one entry a layer, its first call. */
export function layerTicks(tree: Tree): LayerTick[] {
  const first = new Map<number, number>();
  for (let row = 0; row < tree.rows; row += 1) {
    const layer = at(tree.layer, row);
    const order = at(tree.order, row);
    if (layer < 0 || order < 0 || at(tree.direction, row) !== DIRECTION.forward) continue;
    const known = first.get(layer);
    if (known === undefined || order < known) first.set(layer, order);
  }
  return [...first].map(([layer, order]) => ({ layer, order })).sort((a, b) => a.order - b.order);
}

/** Numbers to print: every `step`-th layer and the last, with room between them. */
export function labelledTicks(ticks: readonly LayerTick[], scale: RailScale, room: number): LayerTick[] {
  if (ticks.length === 0) return [];
  const last = ticks[ticks.length - 1] as LayerTick;
  const step = [1, 2, 4, 8, 16, 32, 64, 128].find((size) => {
    const pairs = ticks.filter((tick) => tick.layer % size === 0);
    return pairs.every((tick, index) => index === 0 || scale.x(tick.order) - scale.x((pairs[index - 1] as LayerTick).order) >= room);
  });
  const shown = ticks.filter((tick) => tick.layer % Math.max(step ?? 256, ticks.length > 12 ? 4 : 1) === 0 && tick !== last);
  return [...shown.filter((tick) => scale.x(last.order) - scale.x(tick.order) >= room), last];
}

/** Order at which the backward pass begins, or −1. */
export function backwardStart(tree: Tree): number {
  let start = -1;
  for (let row = 0; row < tree.rows; row += 1) {
    const order = at(tree.order, row);
    if (order >= 0 && at(tree.direction, row) === DIRECTION.backward && (start < 0 || order < start)) start = order;
  }
  return start;
}

/**
 * The noise band's upper edge: the median floor of each of `steps` stretches of execution, smoothed. Floors differ from row to row, and a
 * mark's shape says whether the row left its own; the band says where noise usually ends. [order, floor] pairs.
 */
export function noiseBand(tree: Tree, execution: ExecutionOrder, steps: number): [number, number][] {
  const rows = execution.rows;
  if (rows.length === 0) return [];
  const lastOrder = at(tree.order, at(rows, rows.length - 1));
  const count = Math.max(1, Math.min(steps, Math.ceil(rows.length / 6)));
  const floors: number[][] = Array.from({ length: count }, () => []);
  for (let index = 0; index < rows.length; index += 1) {
    const row = at(rows, index);
    const floor = at(tree.floor, row);
    if (floor > 0) floors[Math.min(count - 1, Math.floor((at(tree.order, row) / (lastOrder + 1)) * count))]?.push(floor);
  }
  const medians = floors.map((bin) => (bin.length === 0 ? Number.NaN : Math.log(bin.sort((a, b) => a - b)[bin.length >> 1] as number)));
  const reach = Math.max(1, Math.round(count / 16));
  const band: [number, number][] = [];
  for (let bin = 0; bin < count; bin += 1) {
    let sum = 0;
    let weight = 0;
    for (let near = Math.max(0, bin - reach); near <= Math.min(count - 1, bin + reach); near += 1) {
      const value = medians[near] as number;
      const share = 1 + reach - Math.abs(near - bin);
      if (Number.isNaN(value)) continue;
      sum += value * share;
      weight += share;
    }
    if (weight > 0) band.push([((bin + 0.5) / count) * (lastOrder + 1), Math.exp(sum / weight)]);
  }
  return band;
}

/** Dots carry rows; the row under a mark. */
export function rowOfDot(dots: RailDots, index: number): Row {
  return at(dots.row, index) as Row;
}
