import { prepare } from "./surface";
import type { Theme } from "./theme";

/** Bars side by side from the ground up: how large the difference is along rows or columns. The largest is as high as the room. */
export function paintProfile(canvas: HTMLCanvasElement, values: readonly number[], width: number, height: number, theme: Theme): void {
  const context = prepare(canvas, width, height);
  if (context === null) return;
  ground(context, width, height, theme);
  const largest = Math.max(0, ...values.filter(Number.isFinite));
  if (largest <= 0) return;
  const pitch = width / values.length;
  const bar = pitch > 3 ? pitch - 1 : pitch;
  values.forEach((value, place) => {
    if (!(value > 0)) return;
    const share = Math.min(1, value / largest);
    context.fillStyle = share > 0.5 ? (theme.ramp[4] as string) : share > 0.1 ? (theme.ramp[3] as string) : theme.ctl;
    const tall = Math.max(1, share * (height - 2));
    context.fillRect(place * pitch, height - 1 - tall, Math.max(0.5, bar), tall);
  });
}

/** A bar for each distance, its height the share of the elements on a root scale: one element in ten thousand still shows. */
export function paintHistogram(canvas: HTMLCanvasElement, counts: readonly number[], width: number, height: number, theme: Theme): void {
  const context = prepare(canvas, width, height);
  if (context === null) return;
  ground(context, width, height, theme);
  const total = counts.reduce((sum, count) => sum + count, 0);
  if (total === 0) return;
  const pitch = width / counts.length;
  counts.forEach((count, place) => {
    if (count === 0) return;
    const tall = Math.max(2, Math.sqrt(count / total) * (height - 2));
    context.fillStyle = place === 0 ? theme.ctl : (theme.ramp[Math.min(5, 1 + Math.ceil(place / 2))] as string);
    context.fillRect(place * pitch + 1, height - 1 - tall, Math.max(1, pitch - 3), tall);
  });
}

function ground(context: CanvasRenderingContext2D, width: number, height: number, theme: Theme): void {
  context.fillStyle = theme.line;
  context.fillRect(0, height - 1, width, 1);
}
