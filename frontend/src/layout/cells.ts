import type { Column } from "../model/parts";

/** Where the cells of stage × step × rank stand, in pixels from the left end of the first cell. */
export interface CellLayout {
  /** Left edge of each column, ascending. */
  readonly x: Float64Array;
  readonly cell: number;
  readonly cellHeight: number;
  readonly rowHeight: number;
  /** Of the names of the steps, and of the ranks where they have columns of their own. */
  readonly headHeight: number;
  readonly width: number;
  /** Names of steps that stand too close are left out: each step whose place among the steps is a multiple of this has its name. */
  readonly nameEvery: number;
}

/** Distances between the cells of one step, the largest that fits is taken; the last is the smallest that a sign can be told in. */
const RANK_PITCHES = [30, 24, 20, 17] as const;
const STEP_PITCHES = [58, 44, 34, 26, 21, 17] as const;
const PHONE_PITCH = 48;
const STEP_GAP = 7;
const CHARACTER = 6.6;

/** `available` is the width beside the names of the stages; 0 = not known yet. `named`: on a phone a stage's name stands above its cells. */
export function cellLayout(columns: readonly Column[], available: number, phone: boolean, named = true): CellLayout {
  const ranked = columns.some(({ rank }) => rank !== null);
  const steps = 1 + columns.filter((column, at) => at > 0 && column.step !== columns[at - 1]?.step).length;
  const gap = ranked ? STEP_GAP : 0;
  const widthOf = (pitch: number) => columns.length * pitch + (steps - 1) * gap;
  const pitches: readonly number[] = phone ? [PHONE_PITCH] : ranked ? RANK_PITCHES : STEP_PITCHES;
  const smallest = pitches[pitches.length - 1] as number;
  const pitch = available === 0 ? smallest : (pitches.find((one) => widthOf(one) <= available) ?? smallest);
  const x = new Float64Array(columns.length);
  let left = 0;
  columns.forEach((column, at) => {
    if (at > 0 && column.step !== columns[at - 1]?.step) left += gap;
    x[at] = left;
    left += pitch;
  });
  const stepWidth = (left + gap) / Math.max(1, steps);
  const longest = Math.max(1, ...columns.map(({ step }) => `${step ?? "–"}`.length));
  const cellHeight = phone ? 44 : Math.min(pitch - 2, 30);
  return {
    x,
    cell: pitch - (pitch > 26 ? 4 : 2),
    cellHeight,
    rowHeight: phone && named ? cellHeight + 26 : Math.max(28, cellHeight + 8),
    headHeight: ranked ? 36 : 20,
    width: left,
    nameEvery: Math.max(1, Math.ceil((longest * CHARACTER + 6) / stepWidth)),
  };
}

/** Positions of those that reach into `from` … `to`, with `over` more on each side: `[first, past the last]`. */
export function visibleRange(x: Float64Array, size: number, from: number, to: number, over: number): readonly [number, number] {
  let first = 0;
  while (first < x.length && (x[first] as number) + size < from) first += 1;
  let end = first;
  while (end < x.length && (x[end] as number) <= to) end += 1;
  return [Math.max(0, first - over), Math.min(x.length, end + over)];
}
