/** The axis every bar and cell shares: 0.07 % at the left end, 50 % at the right, logarithmic. */
const LOG_START = 3.15;
const DECADES = 2.85;

/** Ticks named in the header. */
export const AXIS_TICKS: readonly number[] = [0.001, 0.01, 0.1];

/** Share of the axis that a relative difference reaches, 0 … 1. 0 and NaN reach nothing, ±Inf all of it. */
export function axisShare(difference: number): number {
  const size = Math.abs(difference);
  if (!(size > 0)) return 0;
  if (size === Number.POSITIVE_INFINITY) return 1;
  return Math.min(1, Math.max(0, (Math.log10(size) + LOG_START) / DECADES));
}

/** Where the ramp changes colour above the row's own floor. */
export const RAMP_BREAKS: readonly number[] = [0.01, 0.03, 0.1, 0.3];

/** 0 = within the row's own noise; 1 … 5 = the ramp's colours. NaN is 0. */
export function rampLevel(difference: number, floor: number): number {
  const size = Math.abs(difference);
  if (!(size > 0) || size <= floor) return 0;
  let level = 1;
  for (const limit of RAMP_BREAKS) if (size >= limit) level += 1;
  return level;
}

/** From this level on, a number is set in bold. */
export const BOLD_LEVEL = 3;
