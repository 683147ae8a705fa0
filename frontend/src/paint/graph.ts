import { boxAcross, type GraphLayout, type GraphPanes, HEAD, placesBetween } from "../layout/graph";
import { at, ROLE } from "../model/rows";
import { prepare, triangle } from "./surface";
import type { Theme } from "./theme";

/** What is drawn of one place. */
export interface GraphBox {
  /** Names of the records on each side, one box a name; null: that side has none. Empty: drawn on neither side alone. */
  readonly left: readonly string[] | null;
  readonly right: readonly string[] | null;
  readonly value: string;
  /** 0 within noise, 1 … 5 the ramp. */
  readonly level: number;
  readonly role: number;
  /** Beyond noise: the link between the two is drawn so. */
  readonly dirty: boolean;
  /** `3 : 1`, "" where it is one to one. */
  readonly ratio: string;
  /** Levels of the layers of a fold. */
  readonly cells: readonly number[] | null;
  /** null: there is nothing to open. */
  readonly expanded: boolean | null;
}

export interface GraphScene {
  readonly width: number;
  readonly height: number;
  readonly scale: number;
  /** Height of the graph, at 100 %, at the top of the picture. */
  readonly from: number;
  readonly layout: GraphLayout;
  readonly panes: GraphPanes;
  readonly boxOf: (place: number) => GraphBox;
  readonly selected: number;
  readonly hovered: number;
  readonly noPartner: string;
}

/** Below this names can no longer be read, and only boxes and colours are drawn. */
const READABLE = 0.55;
const SIDES = ["left", "right"] as const;
const PADDING = 8;
const SIGN = 16;

export function paintGraph(canvas: HTMLCanvasElement, scene: GraphScene, theme: Theme): void {
  const context = prepare(canvas, scene.width, scene.height);
  if (context === null) return;
  context.fillStyle = theme.ground;
  context.fillRect(0, 0, scene.width, scene.height);
  context.save();
  context.scale(scene.scale, scene.scale);
  context.translate(0, -scene.from);
  context.textBaseline = "middle";
  const places = placesBetween(scene.layout, scene.from, scene.from + scene.height / scene.scale);
  for (const place of places) for (const side of SIDES) paintSide(context, scene, place, side, theme);
  for (const place of places) paintLink(context, scene, place, theme);
  context.restore();
}

function paintSide(context: CanvasRenderingContext2D, scene: GraphScene, place: number, side: "left" | "right", theme: Theme): void {
  const { layout, panes } = scene;
  const box = scene.boxOf(place);
  const names = box[side];
  const { x: inset, width } = boxAcross(panes, at(layout.level, place));
  const x = panes[side] + inset;
  const y = at(layout.top, place);
  const height = at(layout.height, place);
  if (names === null) {
    paintAbsent(context, scene, x, y, width, at(layout.open, place) === 1 ? HEAD - 4 : height, theme);
    return;
  }
  const count = names.length;
  const gap = 5;
  const each = (width - gap * (count - 1)) / count;
  for (let index = 0; index < count; index += 1) {
    paintBox(context, scene, box, place, names[index] ?? "", x + index * (each + gap), y, each, height, index === count - 1, theme);
  }
}

function paintBox(
  context: CanvasRenderingContext2D,
  scene: GraphScene,
  box: GraphBox,
  place: number,
  name: string,
  x: number,
  y: number,
  width: number,
  height: number,
  last: boolean,
  theme: Theme,
): void {
  const open = at(scene.layout.open, place) === 1;
  const alone = box.left === null || box.right === null;
  const filled = !open && box.level > 0 && box.cells === null;
  if (box.cells !== null && !open) {
    // Two edges below: other layers lie under this one.
    context.strokeStyle = theme.line2;
    context.strokeRect(x + 2.5, y + 4.5, width - 5, height - 3);
    context.fillStyle = theme.ground;
    context.fillRect(x + 1, y + 1, width - 2, height - 1);
  }
  context.fillStyle = filled
    ? (theme.ramp[box.level] as string)
    : open && at(scene.layout.level, place) % 2 === 0
      ? theme.sunken
      : theme.surface;
  context.fillRect(x, y, width, height);
  if (alone && !open) hatch(context, x, y, width, height, theme);
  const selected = place === scene.selected;
  context.lineWidth = selected ? 2 : 1;
  context.strokeStyle = selected
    ? theme.ink
    : place === scene.hovered
      ? theme.ctl
      : box.level > 0 && box.cells === null
        ? theme.outline
        : theme.line2;
  context.strokeRect(x + 0.5, y + 0.5, width - 1, height - 1);
  context.lineWidth = 1;
  if (scene.scale < READABLE) return;
  const middle = y + (open ? HEAD : height) / 2;
  const ink = filled ? (theme.onRamp[box.level] as string) : theme.text;
  let left = x + PADDING;
  if (box.expanded !== null) {
    chevron(context, left + 3, middle, box.expanded, filled ? ink : theme.muted);
    left += 13;
  }
  if (sign(context, box.role, left + 6, middle, filled ? ink : null, theme)) left += SIGN;
  const shown = last ? box.value : "";
  context.font = `${selected || box.role === ROLE.origin ? "600 " : ""}12px ${theme.font}`;
  context.textAlign = "right";
  context.fillStyle = filled ? ink : theme.text2;
  const valueWidth = shown === "" ? 0 : Math.min(width / 2, context.measureText(shown).width + 10);
  if (box.cells === null || open) context.fillText(shown, x + width - PADDING, middle);
  else paintCells(context, box.cells, x + width - PADDING, middle, width * 0.55, theme);
  context.textAlign = "left";
  context.fillStyle = alone && !filled ? theme.text2 : ink;
  const room = x + width - PADDING - left - (box.cells === null || open ? valueWidth : Math.min(width * 0.55, box.cells.length * 14) + 8);
  context.fillText(fitted(context, name, room), left, middle);
}

/** A dashed place where the other side has a module and this one has none. */
function paintAbsent(
  context: CanvasRenderingContext2D,
  { scale, noPartner }: GraphScene,
  x: number,
  y: number,
  width: number,
  height: number,
  theme: Theme,
): void {
  context.strokeStyle = theme.ctl;
  context.setLineDash([3, 3]);
  context.strokeRect(x + 0.5, y + 0.5, width - 1, height - 1);
  context.setLineDash([]);
  if (scale < READABLE) return;
  context.font = `12px ${theme.font}`;
  context.textAlign = "left";
  context.fillStyle = theme.muted;
  context.fillText(fitted(context, noPartner, width - 2 * PADDING), x + PADDING, y + height / 2);
}

/** From partner to partner, level; a tag where several stand for one. */
function paintLink(context: CanvasRenderingContext2D, scene: GraphScene, place: number, theme: Theme): void {
  const { layout, panes } = scene;
  const box = scene.boxOf(place);
  if (box.left === null || box.right === null || box.left.length === 0 || box.right.length === 0) return;
  const { x: inset, width } = boxAcross(panes, at(layout.level, place));
  const y = Math.round(at(layout.top, place) + (at(layout.open, place) === 1 ? HEAD : at(layout.height, place)) / 2) + 0.5;
  const from = panes.left + inset + width;
  const to = panes.right + inset;
  const colour = place === scene.selected ? theme.ink : box.dirty ? theme.bad : theme.ctl;
  context.strokeStyle = colour;
  context.fillStyle = colour;
  context.lineWidth = place === scene.selected ? 2 : 1;
  context.beginPath();
  context.moveTo(from, y);
  context.lineTo(to, y);
  context.stroke();
  context.lineWidth = 1;
  for (const end of [from, to]) {
    context.beginPath();
    context.arc(end, y, 2, 0, Math.PI * 2);
    context.fill();
  }
  if (box.ratio === "" || scene.scale < READABLE) return;
  context.font = `11px ${theme.font}`;
  const room = context.measureText(box.ratio).width + 8;
  const middle = panes.left + panes.pane + panes.gutter / 2;
  context.fillStyle = theme.surface;
  context.fillRect(middle - room / 2, y - 8, room, 16);
  context.strokeStyle = theme.line2;
  context.strokeRect(middle - room / 2 + 0.5, y - 7.5, room - 1, 15);
  context.fillStyle = theme.text2;
  context.textAlign = "center";
  context.fillText(box.ratio, middle, y);
}

function paintCells(
  context: CanvasRenderingContext2D,
  cells: readonly number[],
  right: number,
  middle: number,
  room: number,
  theme: Theme,
): void {
  const pitch = Math.min(12, room / cells.length);
  const size = Math.max(1, pitch - (pitch > 5 ? 2 : 0));
  const left = right - pitch * cells.length;
  cells.forEach((level, index) => {
    const x = left + index * pitch;
    context.fillStyle = level > 0 ? (theme.ramp[level] as string) : theme.noise;
    context.fillRect(x, middle - 6, size, 12);
    if (size < 5) return;
    context.strokeStyle = level > 0 && level <= 3 ? theme.outline : level > 0 ? (theme.ramp[level] as string) : theme.line2;
    context.strokeRect(x + 0.5, middle - 5.5, size - 1, 11);
  });
}

function chevron(context: CanvasRenderingContext2D, x: number, y: number, open: boolean, colour: string): void {
  context.strokeStyle = colour;
  context.lineWidth = 1.4;
  context.beginPath();
  if (open) {
    context.moveTo(x - 3, y - 1.5);
    context.lineTo(x, y + 2);
    context.lineTo(x + 3, y - 1.5);
  } else {
    context.moveTo(x - 1.5, y - 3);
    context.lineTo(x + 2, y);
    context.lineTo(x - 1.5, y + 3);
  }
  context.stroke();
  context.lineWidth = 1;
}

/** The sign of a role; on a filled box in the ink that is written there. Whether one was drawn. */
function sign(context: CanvasRenderingContext2D, role: number, x: number, y: number, ink: string | null, theme: Theme): boolean {
  const bad = ink ?? theme.bad;
  context.lineWidth = 1.3;
  context.strokeStyle = bad;
  context.fillStyle = bad;
  let drawn = true;
  if (role === ROLE.origin) {
    triangle(context, x, y, 5);
    context.fill();
  } else if (role === ROLE.inherited) {
    triangle(context, x, y, 4.5);
    context.stroke();
  } else if (role === ROLE.amplified) {
    context.beginPath();
    for (const dx of [-3, 3]) {
      context.moveTo(x + dx, y + 4.5);
      context.lineTo(x + dx, y - 4);
      context.moveTo(x + dx - 2.2, y - 1.6);
      context.lineTo(x + dx, y - 4);
      context.lineTo(x + dx + 2.2, y - 1.6);
    }
    context.stroke();
  } else if (role === ROLE.healed) {
    context.strokeStyle = ink ?? theme.good;
    context.beginPath();
    context.moveTo(x - 4.5, y);
    context.lineTo(x - 1.5, y + 3.2);
    context.lineTo(x + 4.5, y - 3.6);
    context.stroke();
  } else if (role === ROLE.noData || role === ROLE.notComparable) {
    context.strokeStyle = ink ?? theme.muted;
    context.beginPath();
    if (role === ROLE.noData) {
      context.arc(x, y, 4.2, 0, Math.PI * 2);
      context.moveTo(x - 3, y + 3);
      context.lineTo(x + 3, y - 3);
    } else {
      for (const dy of [-2, 2]) {
        context.moveTo(x - 4.5, y + dy + 0.8);
        context.quadraticCurveTo(x - 2.2, y + dy - 1.6, x, y + dy);
        context.quadraticCurveTo(x + 2.2, y + dy + 1.6, x + 4.5, y + dy - 0.8);
      }
    }
    context.stroke();
  } else drawn = false;
  context.lineWidth = 1;
  return drawn;
}

function hatch(context: CanvasRenderingContext2D, x: number, y: number, width: number, height: number, theme: Theme): void {
  context.save();
  context.beginPath();
  context.rect(x, y, width, height);
  context.clip();
  context.strokeStyle = theme.line;
  context.beginPath();
  for (let at = x - height; at < x + width; at += 6) {
    context.moveTo(at, y + height);
    context.lineTo(at + height, y);
  }
  context.stroke();
  context.restore();
}

/** A name that fits, its beginning left out where it does not: the end tells modules apart. */
function fitted(context: CanvasRenderingContext2D, text: string, room: number): string {
  if (room <= 8) return "";
  if (context.measureText(text).width <= room) return text;
  let low = 0;
  let high = text.length;
  while (low < high) {
    const middle = (low + high) >> 1;
    if (context.measureText(`…${text.slice(middle)}`).width <= room) high = middle;
    else low = middle + 1;
  }
  return low >= text.length ? "" : `…${text.slice(low)}`;
}

export interface MinimapScene {
  readonly width: number;
  readonly height: number;
  readonly levels: Int8Array;
  /** What is in sight, and marks of origins, as shares of the whole. */
  readonly from: number;
  readonly to: number;
  readonly origins: readonly number[];
}

/** The whole graph in a strip: a line a pixel, what is in sight, and where the origins are. */
export function paintMinimap(canvas: HTMLCanvasElement, scene: MinimapScene, theme: Theme): void {
  const context = prepare(canvas, scene.width, scene.height);
  if (context === null) return;
  const column = (scene.width - 16) / 2;
  scene.levels.forEach((level, y) => {
    if (level < 0) return;
    context.fillStyle = level > 0 ? (theme.ramp[level] as string) : theme.noise;
    context.fillRect(11, y, column, 1);
    context.fillRect(13 + column, y, column, 1);
  });
  context.fillStyle = theme.bad;
  for (const share of scene.origins) {
    const y = Math.max(4, Math.min(scene.height - 4, share * scene.height));
    context.beginPath();
    context.moveTo(8, y);
    context.lineTo(1, y - 4);
    context.lineTo(1, y + 4);
    context.closePath();
    context.fill();
  }
  const top = scene.from * scene.height;
  const height = Math.max(8, (Math.min(1, scene.to) - scene.from) * scene.height);
  context.strokeStyle = theme.ink;
  context.lineWidth = 1.5;
  context.strokeRect(9.75, top + 0.75, scene.width - 11.5, Math.max(4, height - 1.5));
  context.lineWidth = 1;
}
