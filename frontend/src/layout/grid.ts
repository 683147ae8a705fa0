/** The columns of the tree, left to right, in pixels; 0 = not shown at this width. */
export interface TreeColumns {
  readonly gutter: number;
  readonly train: number;
  readonly inference: number;
  readonly bar: number;
  readonly value: number;
  readonly growth: number;
  readonly inside: number;
  readonly pad: number;
}

export const ROW_HEIGHT = 24;
export const INDENT = 14;
/** Room between a cell's left edge and the first guide. */
export const GUIDE_START = 7;
/** What a bar may use of its column. */
export const BAR_WIDTH = 142;
const BAR_WIDTH_NARROW = 92;
/** Pitch of a strip's cells while they fit the bar. */
export const CELL_PITCH = 14;
export const CELL_SIZE = 10;

const FULL = { gutter: 28, train: 258, inference: 146, bar: 150, value: 68, growth: 54, inside: 90, pad: 12 } as const;
const FULL_WIDTH = 806;

/** A wider tree gives its room to the names; a narrower one drops growth and inside first, then the inference name, then half the bar. */
export function treeColumns(width: number): TreeColumns {
  if (width >= FULL_WIDTH) {
    const spare = width - FULL_WIDTH;
    const train = FULL.train + Math.round(spare * 0.6);
    return { ...FULL, train, inference: FULL.inference + (spare - Math.round(spare * 0.6)) };
  }
  if (width >= 660) {
    const { gutter, bar, value, growth, inside, pad } = FULL;
    const names = width - gutter - bar - value - growth - inside - pad;
    const inference = Math.round(names * 0.36);
    return { ...FULL, train: names - inference, inference };
  }
  if (width >= 560) {
    const { gutter, bar, value, growth, pad } = FULL;
    const names = width - gutter - bar - value - growth - pad;
    const inference = Math.round(names * 0.36);
    return { gutter, train: names - inference, inference, bar, value, growth, inside: 0, pad };
  }
  const { gutter, value } = FULL;
  const bar = BAR_WIDTH_NARROW + 8;
  return { gutter, train: width - gutter - bar - value - 8, inference: 0, bar, value, growth: 0, inside: 0, pad: 8 };
}

export function barWidth(columns: TreeColumns): number {
  return columns.bar - 8;
}

/** Pitch and size of a strip's cells so that all of them fit; below 4 px a cell is a line without an outline. */
export function stripCells(count: number, width: number): { pitch: number; size: number } {
  const pitch = Math.min(CELL_PITCH, (width - CELL_SIZE) / Math.max(1, count - 1), width / count);
  return { pitch, size: Math.max(1, Math.min(CELL_PITCH - 2, pitch - (pitch >= 6 ? 2 : pitch >= 3 ? 1 : 0))) };
}
