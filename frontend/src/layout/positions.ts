/** Where the bars of a row of values stand: x by position, height by the logarithm of the difference. */
export interface PositionScale {
  readonly count: number;
  readonly left: number;
  readonly right: number;
  readonly top: number;
  readonly bottom: number;
  /** log10 at the bottom and the top; equal where there is nothing to measure. */
  readonly low: number;
  readonly high: number;
  /** Powers of ten with a line, largest first. */
  readonly ticks: readonly number[];
}

export interface PositionBar {
  readonly x: number;
  readonly y: number;
  readonly width: number;
  /** One side has no number there. */
  readonly infinite: boolean;
}

const AXIS = 44;
const FOOT = 16;
/** Below so many decades nothing is told apart from nothing. */
const DECADES = 5;
/** A few values are bars all the same, not fields. */
const WIDEST = 28;

/** `plain`: positions either differ or not, so there is no axis. */
export function positionScale(sizes: Float64Array, width: number, height: number, plain: boolean): PositionScale {
  let least = Number.POSITIVE_INFINITY;
  let most = 0;
  for (const size of sizes) {
    if (size > 0 && size < least) least = size;
    if (size > most && size !== Number.POSITIVE_INFINITY) most = size;
  }
  const measured = !plain && most > 0;
  const high = measured ? Math.ceil(Math.log10(most) + 1e-9) : 0;
  const low = measured ? Math.min(high - 1, Math.max(Math.floor(Math.log10(least)), high - DECADES)) : 0;
  const ticks: number[] = [];
  if (measured) for (let power = high; power >= low; power -= 1) ticks.push(10 ** power);
  return { count: sizes.length, left: plain ? 0 : AXIS, right: width, top: 6, bottom: height - FOOT, low, high, ticks };
}

export function positionX({ left, right, count }: PositionScale, position: number): number {
  return left + ((position + 0.5) / Math.max(1, count)) * (right - left);
}

export function positionY({ top, bottom, low, high }: PositionScale, size: number): number {
  if (size === Number.POSITIVE_INFINITY || low === high) return top;
  const share = (Math.log10(size) - low) / (high - low);
  return bottom - Math.max(0.03, Math.min(1, share)) * (bottom - top);
}

/** The position under an x of the picture. */
export function positionAt({ left, right, count }: PositionScale, x: number): number {
  return Math.max(0, Math.min(count - 1, Math.floor(((x - left) / Math.max(1, right - left)) * count)));
}

/** A bar for each position that differs; where several share a pixel the largest of them stands. */
export function positionBars(scale: PositionScale, sizes: Float64Array): readonly PositionBar[] {
  const pitch = (scale.right - scale.left) / Math.max(1, scale.count);
  const bar = (x: number, width: number, size: number): PositionBar => ({
    x,
    y: positionY(scale, size),
    width,
    infinite: size === Number.POSITIVE_INFINITY,
  });
  const bars: PositionBar[] = [];
  if (pitch >= 1) {
    const width = Math.min(WIDEST, Math.max(1, pitch >= 3 ? pitch - 1 : pitch));
    const inset = width === WIDEST ? (pitch - width) / 2 : 0;
    sizes.forEach((size, position) => {
      if (size > 0) bars.push(bar(scale.left + position * pitch + inset, width, size));
    });
    return bars;
  }
  const largest = new Float64Array(Math.max(1, Math.floor(scale.right - scale.left)));
  sizes.forEach((size, position) => {
    const column = Math.min(largest.length - 1, Math.floor(position * pitch));
    if (size > (largest[column] as number)) largest[column] = size;
  });
  largest.forEach((size, column) => {
    if (size > 0) bars.push(bar(scale.left + column, 1, size));
  });
  return bars;
}
