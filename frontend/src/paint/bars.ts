import { axisShare, rampLevel } from "../layout/axis";
import { ROW_HEIGHT, stripCells } from "../layout/grid";
import { layerDifference } from "../model/fold";
import { at, GRADE, ROLE, type Row } from "../model/rows";
import type { Tree } from "../model/tree";
import type { VisibleRows } from "../model/visible";
import { prepare } from "./surface";
import type { Theme } from "./theme";

const BAR_HEIGHT = 11;
const QUIET_HEIGHT = 5;

/**
 * The bar column of the places `from` … `to` of the visible rows: each row's own noise floor as a grey ground, a thin grey bar within it, a
 * coloured bar that leaves it, a whisker to the worst inside; a strip of cells for folded layers.
 */
export function paintBars(
  canvas: HTMLCanvasElement,
  tree: Tree,
  view: VisibleRows,
  from: number,
  to: number,
  width: number,
  theme: Theme,
): void {
  // One pixel more than the bar, for the outline of the longest.
  const context = prepare(canvas, width + 1, (to - from) * ROW_HEIGHT);
  if (context === null) return;
  for (let place = from; place < to; place += 1) {
    const top = (place - from) * ROW_HEIGHT;
    const strip = view.strips.get(place);
    if (strip !== undefined) paintStrip(context, tree, strip.layers, top, width, theme);
    else paintRow(context, tree, at(view.rows, place), top, width, theme);
  }
}

function paintRow(context: CanvasRenderingContext2D, tree: Tree, row: number, top: number, width: number, theme: Theme): void {
  if (!hasBar(tree, row)) return;
  const difference = at(tree.difference, row);
  const floor = at(tree.floor, row);
  const middle = top + ROW_HEIGHT / 2;
  if (floor > 0) {
    context.fillStyle = theme.noise;
    context.fillRect(0, top, axisShare(floor) * width, ROW_HEIGHT);
  }
  const worst = at(tree.worst, row);
  const end = axisShare(difference) * width;
  const worstEnd = axisShare(worst) * width;
  if (worstEnd > end + 2) paintWhisker(context, end, worstEnd, middle, theme);
  paintBar(context, difference, rampLevel(difference, floor), end, middle, theme);
}

/** Unmatched and not comparable rows give the bar's place to their reason. */
export function hasBar(tree: Tree, row: number): boolean {
  const role = at(tree.role, row);
  if (role === ROLE.leftOnly || role === ROLE.rightOnly || role === ROLE.notComparable || role === ROLE.noData) return false;
  return at(tree.grade, row) !== GRADE.none || !Number.isNaN(at(tree.worst, row)) || !Number.isNaN(at(tree.difference, row));
}

function paintBar(context: CanvasRenderingContext2D, size: number, level: number, end: number, middle: number, theme: Theme): void {
  if (!(Math.abs(size) > 0)) return;
  if (level === 0) {
    context.fillStyle = theme.ctl;
    context.fillRect(0, middle - QUIET_HEIGHT / 2, Math.max(1, end), QUIET_HEIGHT);
    return;
  }
  const top = middle - BAR_HEIGHT / 2;
  context.fillStyle = theme.ramp[level] as string;
  context.fillRect(0, top, Math.max(2, end), BAR_HEIGHT);
  if (level <= 3) {
    context.strokeStyle = theme.outline;
    context.lineWidth = 1;
    context.strokeRect(0.5, top + 0.5, Math.max(1, end - 1), BAR_HEIGHT - 1);
  }
}

function paintWhisker(context: CanvasRenderingContext2D, from: number, to: number, middle: number, theme: Theme): void {
  context.fillStyle = theme.ctl;
  context.fillRect(from, middle - 0.5, to - from, 1);
  context.fillStyle = theme.text2;
  context.fillRect(to - 1, middle - 4, 1.5, 8);
}

function paintStrip(context: CanvasRenderingContext2D, tree: Tree, layers: readonly Row[], top: number, width: number, theme: Theme): void {
  const { pitch, size } = stripCells(layers.length, width);
  const cellTop = top + (ROW_HEIGHT - BAR_HEIGHT) / 2;
  layers.forEach((layer, index) => {
    const difference = layerDifference(tree, layer);
    const floor = at(tree.floor, layer);
    const level = rampLevel(difference, floor);
    const x = index * pitch;
    if (level > 0) {
      context.fillStyle = theme.ramp[level] as string;
      context.fillRect(x, cellTop, size, BAR_HEIGHT);
      if (level <= 3 && size >= 4) {
        context.strokeStyle = theme.outline;
        context.lineWidth = 1;
        context.strokeRect(x + 0.5, cellTop + 0.5, size - 1, BAR_HEIGHT - 1);
      }
      return;
    }
    // A cell within noise fills from below with its share of its own floor: quiet is not empty.
    context.fillStyle = theme.noise;
    context.fillRect(x, cellTop, size, BAR_HEIGHT);
    const share = difference > 0 ? Math.min(1, axisShare(difference) / Math.max(1e-6, axisShare(floor))) : 0;
    const height = Math.round(share * (BAR_HEIGHT - 3));
    const inset = size >= 6 ? 2 : 0;
    context.fillStyle = theme.ctl;
    if (height > 0) context.fillRect(x + inset, cellTop + BAR_HEIGHT - 1 - height, Math.max(1, size - 2 * inset), height);
    if (size >= 4) {
      context.strokeStyle = theme.line2;
      context.lineWidth = 1;
      context.strokeRect(x + 0.5, cellTop + 0.5, size - 1, BAR_HEIGHT - 1);
    }
  });
}
