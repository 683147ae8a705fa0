/** Where the points of a line over steps stand: x by step, y on a log axis with 0 on the ground. */
export interface DriftScale {
  readonly x: (step: number) => number;
  readonly y: (value: number) => number;
}

const MARGIN = 3;
/** Half a decade of room below the smallest value, so that it is not taken for 0. */
const ROOM = 0.5;

export function driftScale(steps: readonly number[], values: readonly (number | null)[], width: number, height: number): DriftScale {
  const sizes = values.filter((value): value is number => value !== null && value > 0 && Number.isFinite(value)).map(Math.log10);
  const low = Math.min(...sizes) - ROOM;
  const high = Math.max(...sizes, low + 1);
  const first = steps[0] ?? 0;
  const span = (steps[steps.length - 1] ?? 0) - first;
  return {
    x: (step) => (span === 0 ? width / 2 : MARGIN + ((step - first) / span) * (width - 2 * MARGIN)),
    y: (value) => {
      if (value === Number.POSITIVE_INFINITY || Number.isNaN(value)) return MARGIN;
      if (!(value > 0)) return height - MARGIN + 1;
      return MARGIN + (1 - (Math.log10(value) - low) / (high - low)) * (height - 2 * MARGIN - 1);
    },
  };
}

/** From so many points on they run together and only the line is drawn. */
const MOST_DOTS = 60;

/** The line, broken where a step has no value, and its points, as two SVG paths. */
export function linePath(scale: DriftScale, steps: readonly number[], values: readonly (number | null)[]): { path: string; dots: string } {
  let path = "";
  let dots = "";
  let pen = false;
  steps.forEach((step, at) => {
    const value = values[at] ?? null;
    if (value === null) {
      pen = false;
      return;
    }
    const point = `${scale.x(step).toFixed(1)} ${scale.y(value).toFixed(1)}`;
    path += `${pen ? "L" : "M"}${point}`;
    if (steps.length <= MOST_DOTS) dots += `M${point}h0`;
    pen = true;
  });
  return { path, dots };
}
