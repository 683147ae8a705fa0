import { type LayerTick, type RailDots, type RailScale, SHAPE } from "../layout/timeline";
import { at } from "../model/rows";
import { prepare, triangle } from "./surface";
import type { Theme } from "./theme";

/** An origin as the timeline names it. */
export interface RailOrigin {
  readonly x: number;
  readonly y: number;
  readonly label: string;
  readonly first: boolean;
  readonly ignored: boolean;
}

export interface RailScene {
  readonly width: number;
  readonly height: number;
  readonly scale: RailScale;
  readonly dots: RailDots;
  readonly band: readonly (readonly [number, number])[];
  readonly ticks: readonly LayerTick[];
  readonly labels: readonly LayerTick[];
  readonly origins: readonly RailOrigin[];
  /** Order where the backward pass begins, −1 = there is none. */
  readonly backward: number;
  /** Where the hatched block stands that says a side has no backward pass; null = no block. */
  readonly missing: { readonly left: number; readonly right: number } | null;
  readonly selectedX: number | null;
  readonly brush: readonly [number, number] | null;
  readonly words: { readonly noise: string; readonly backward: string; readonly missing: readonly string[] };
  readonly compact: boolean;
  readonly percent: (value: number) => string;
}

export function paintRail(canvas: HTMLCanvasElement, scene: RailScene, theme: Theme): void {
  const context = prepare(canvas, scene.width, scene.height);
  if (context === null) return;
  const { scale } = scene;
  const { left, right, top, bottom } = scale.area;
  const small = `11px ${theme.font}`;
  context.font = small;
  context.textBaseline = "middle";

  paintBand(context, scene, theme);
  context.textAlign = "right";
  for (const tick of scale.ticks()) {
    const y = Math.round(scale.y(tick)) + 0.5;
    context.fillStyle = theme.line;
    context.fillRect(left, y - 0.5, right - left, 1);
    context.fillStyle = theme.muted;
    context.fillText(scene.percent(tick), left - 6, y);
  }
  context.fillStyle = theme.line2;
  context.fillRect(left, bottom, right - left, 1);

  for (const tick of scene.ticks) {
    const x = Math.round(scale.x(tick.order));
    const named = scene.labels.includes(tick);
    context.fillStyle = theme.ctl;
    context.fillRect(x, bottom, 1, named ? 5 : 3);
  }
  context.fillStyle = theme.muted;
  context.textAlign = "center";
  for (const tick of scene.labels) {
    const from = scale.x(tick.order);
    const next = scene.ticks[scene.ticks.indexOf(tick) + 1];
    const to = next === undefined ? Math.min(right, from + (right - left) / Math.max(1, scene.ticks.length)) : scale.x(next.order);
    const middle = Math.min(right - 6, Math.max(left + 4, Math.min((from + to) / 2, from + 28)));
    context.fillText(String(tick.layer), middle, bottom + 10);
  }
  if (scene.backward >= 0) {
    const x = Math.round(scale.x(scene.backward)) - 0.5;
    context.fillStyle = theme.line2;
    context.fillRect(x, top - 6, 1, bottom - top + 12);
    context.textAlign = "left";
    context.fillStyle = theme.muted;
    // Beside the number of the last layer where the two would meet.
    const last = scene.labels[scene.labels.length - 1];
    const near = last !== undefined && Math.abs(scale.x(last.order) - x) < 40;
    context.fillText(scene.words.backward, near ? Math.max(x, scale.x(last.order)) + 34 : x + 5, bottom + 10);
  }
  if (scene.missing !== null) paintMissing(context, scene, scene.missing, theme);
  paintDots(context, scene.dots, theme);
  paintOrigins(context, scene, theme);
  paintSelection(context, scene, theme);
}

function paintBand(context: CanvasRenderingContext2D, scene: RailScene, theme: Theme): void {
  const { scale, band } = scene;
  const first = band[0];
  const last = band[band.length - 1];
  if (first === undefined || last === undefined) return;
  const { left, right, bottom } = scale.area;
  context.fillStyle = theme.noise;
  context.beginPath();
  context.moveTo(left, bottom);
  context.lineTo(left, scale.y(first[1]));
  for (const [order, floor] of band) context.lineTo(Math.min(right, scale.x(order)), scale.y(floor));
  context.lineTo(right, scale.y(last[1]));
  context.lineTo(right, bottom);
  context.closePath();
  context.fill();
  context.textAlign = "left";
  context.fillStyle = theme.muted;
  const shown = band[Math.min(band.length - 1, Math.floor(band.length * 0.06))] as readonly [number, number];
  context.fillText(scene.words.noise, left + (scene.compact ? 4 : 14), Math.max(scale.area.top + 2, scale.y(shown[1]) - 8));
}

function paintMissing(context: CanvasRenderingContext2D, scene: RailScene, place: { left: number; right: number }, theme: Theme): void {
  const { top, bottom } = scene.scale.area;
  context.save();
  context.beginPath();
  context.rect(place.left, top, place.right - place.left, bottom - top);
  context.clip();
  context.strokeStyle = theme.line2;
  context.lineWidth = 1;
  context.beginPath();
  for (let x = place.left - (bottom - top); x < place.right; x += 6) {
    context.moveTo(x, bottom);
    context.lineTo(x + (bottom - top), top);
  }
  context.stroke();
  context.restore();
  const lines = scene.words.missing;
  const widest = Math.max(...lines.map((line) => context.measureText(line).width));
  const middle = (place.left + place.right) / 2;
  const centre = (top + bottom) / 2;
  context.fillStyle = theme.surface;
  context.fillRect(middle - widest / 2 - 7, centre - 7 * lines.length - 2, widest + 14, 14 * lines.length + 4);
  context.textAlign = "center";
  lines.forEach((line, index) => {
    context.fillStyle = index === 0 ? theme.text2 : theme.muted;
    context.fillText(line, middle, centre + (index - (lines.length - 1) / 2) * 14);
  });
  context.textAlign = "left";
  context.fillStyle = theme.muted;
  context.fillText(scene.words.backward, place.left, bottom + 10);
}

function paintDots(context: CanvasRenderingContext2D, dots: RailDots, theme: Theme): void {
  context.fillStyle = theme.ctl;
  for (let index = 0; index < dots.count; index += 1) {
    if (at(dots.shape, index) === SHAPE.dot) context.fillRect(Math.round(at(dots.x, index)) - 1, Math.round(at(dots.y, index)) - 1, 2, 2);
  }
  context.lineWidth = 1.2;
  context.strokeStyle = theme.bad;
  context.fillStyle = theme.surface;
  for (let index = 0; index < dots.count; index += 1) {
    const shape = at(dots.shape, index);
    if (shape !== SHAPE.dirty && shape !== SHAPE.amplified) continue;
    triangle(context, at(dots.x, index), at(dots.y, index), 3.4);
    context.fill();
    context.stroke();
  }
}

function paintOrigins(context: CanvasRenderingContext2D, scene: RailScene, theme: Theme): void {
  const { top, bottom, left, right } = scene.scale.area;
  let labelEnd = Number.NEGATIVE_INFINITY;
  context.textBaseline = "middle";
  for (const origin of scene.origins) {
    const colour = origin.ignored ? theme.ctl : theme.bad;
    context.strokeStyle = colour;
    context.lineWidth = 1;
    context.setLineDash(origin.first && !origin.ignored ? [] : [2, 3]);
    context.beginPath();
    context.moveTo(Math.round(origin.x) + 0.5, top - 6);
    context.lineTo(Math.round(origin.x) + 0.5, bottom);
    context.stroke();
    context.setLineDash([]);
    triangle(context, origin.x + 0.5, origin.y, 5);
    context.fillStyle = origin.ignored ? theme.surface : colour;
    context.fill();
    if (origin.ignored) context.stroke();

    context.font = `${origin.first ? "600 12px" : "11px"} ${theme.font}`;
    const width = context.measureText(origin.label).width;
    const leftSide = origin.first ? origin.x - 8 - width > left + 4 : origin.x + 8 + width > right;
    const start = leftSide ? origin.x - 8 - width : origin.x + 8;
    if (start < labelEnd + 8 && !origin.first) continue;
    context.textAlign = "left";
    context.fillStyle = theme.surface;
    context.globalAlpha = origin.first ? 1 : 0.85;
    context.fillRect(start - 3, top - 12, width + 6, 14);
    context.globalAlpha = 1;
    context.fillStyle = origin.first ? theme.text : theme.muted;
    context.fillText(origin.label, start, top - 5);
    labelEnd = start + width;
  }
}

function paintSelection(context: CanvasRenderingContext2D, scene: RailScene, theme: Theme): void {
  const { top, bottom } = scene.scale.area;
  if (scene.brush !== null) {
    const [from, to] = scene.brush;
    context.fillStyle = theme.ctl;
    context.globalAlpha = 0.16;
    context.fillRect(from, top - 6, Math.max(1, to - from), bottom - top + 6);
    context.globalAlpha = 1;
    context.fillStyle = theme.text;
    context.fillRect(Math.round(from), top - 6, 1, bottom - top + 6);
    context.fillRect(Math.round(to), top - 6, 1, bottom - top + 6);
  }
  if (scene.selectedX !== null) {
    const x = Math.round(scene.selectedX);
    context.fillStyle = theme.text;
    context.fillRect(x, bottom - 1, 1, 6);
    context.beginPath();
    context.moveTo(x + 0.5, bottom + 1);
    context.lineTo(x + 4.5, bottom + 7);
    context.lineTo(x - 3.5, bottom + 7);
    context.closePath();
    context.fill();
  }
}
