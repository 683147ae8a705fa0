import { type PositionScale, positionX, positionY } from "../layout/positions";
import { prepare } from "./surface";
import type { Theme } from "./theme";

export interface PositionScene {
  readonly width: number;
  readonly height: number;
  readonly scale: PositionScale;
  readonly bars: readonly { readonly x: number; readonly y: number; readonly width: number; readonly infinite: boolean }[];
  /** Number of the first position that is drawn. */
  readonly from: number;
  /** Positions counted from there; null or outside = not drawn. */
  readonly first: number | null;
  readonly place: number | null;
  /** Positions from here on are padding. */
  readonly valid: number | null;
  readonly padding: string;
  readonly tick: (value: number) => string;
}

export function paintPositions(canvas: HTMLCanvasElement, scene: PositionScene, theme: Theme): void {
  const context = prepare(canvas, scene.width, scene.height);
  if (context === null) return;
  const { scale } = scene;
  const { left, right, bottom, count } = scale;
  context.font = `11px ${theme.font}`;
  context.textBaseline = "middle";
  if (scene.valid !== null && scene.valid < count) paintPadding(context, scene, theme);
  context.textAlign = "right";
  for (const tick of scale.ticks) {
    const y = Math.round(positionY(scale, tick));
    if (y >= bottom - 4) continue;
    context.fillStyle = theme.line;
    context.fillRect(left, y, right - left, 1);
    context.fillStyle = theme.muted;
    context.fillText(scene.tick(tick).replace(/\.?0+$/, ""), left - 6, y);
  }
  context.fillStyle = theme.line2;
  context.fillRect(left, bottom, right - left, 1);
  for (const bar of scene.bars) {
    context.fillStyle = bar.infinite ? theme.bad : theme.ctl;
    context.fillRect(bar.x, bar.y, bar.width, bottom - bar.y);
  }
  mark(context, scene, scene.place, theme.text, false);
  mark(context, scene, scene.first, theme.bad, true);
  context.fillStyle = theme.muted;
  context.textAlign = "left";
  context.fillText(`${scene.from}`, left, bottom + 9);
  context.textAlign = "right";
  context.fillText(`${scene.from + count - 1}`, right, bottom + 9);
  if (scene.first !== null && scene.first > 0 && scene.first < count - 1) {
    const x = positionX(scale, scene.first);
    const text = `${scene.from + scene.first}`;
    const room = context.measureText(text).width;
    if (x - left > room + 20 && right - x > room + 30) {
      context.fillStyle = theme.text;
      context.textAlign = "center";
      context.font = `600 11px ${theme.font}`;
      context.fillText(text, x, bottom + 9);
    }
  }
}

function mark(context: CanvasRenderingContext2D, { scale }: PositionScene, place: number | null, colour: string, whole: boolean): void {
  if (place === null || place < 0 || place >= scale.count) return;
  const x = Math.round(positionX(scale, place));
  context.fillStyle = colour;
  if (whole) context.fillRect(x, scale.top - 4, 1.5, scale.bottom - scale.top + 4);
  else {
    context.beginPath();
    context.moveTo(x + 0.5, scale.bottom + 1);
    context.lineTo(x + 4.5, scale.bottom + 6);
    context.lineTo(x - 3.5, scale.bottom + 6);
    context.closePath();
    context.fill();
  }
}

/** Hatched and named: numbers there say nothing about the model. */
function paintPadding(context: CanvasRenderingContext2D, { scale, valid, padding }: PositionScene, theme: Theme): void {
  const x = scale.left + (Math.max(0, valid ?? 0) / Math.max(1, scale.count)) * (scale.right - scale.left);
  const height = scale.bottom - scale.top;
  context.save();
  context.beginPath();
  context.rect(x, scale.top, scale.right - x, height);
  context.clip();
  context.strokeStyle = theme.line;
  context.beginPath();
  for (let at = x - height; at < scale.right; at += 6) {
    context.moveTo(at, scale.bottom);
    context.lineTo(at + height, scale.top);
  }
  context.stroke();
  context.restore();
  if (scale.right - x < 60) return;
  context.fillStyle = theme.muted;
  context.textAlign = "left";
  context.fillText(padding, x + 6, scale.top + 7);
}
