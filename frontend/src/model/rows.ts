/** A row of the tree: an index into its columns. Branded so that an order, a layer or a pixel is never passed for it. */
export type Row = number & { readonly __row: unique symbol };

export const NO_ROW = -1 as Row;

export function asRow(index: number): Row {
  return index as Row;
}

/** Column read: the index is known to be inside, which `noUncheckedIndexedAccess` cannot see. */
export function at(column: ArrayLike<number>, row: number): number {
  return column[row] as number;
}

export const KIND = { section: 0, module: 1, api: 2, part: 3, container: 4 } as const;

export const ROLE = {
  none: 0,
  origin: 1,
  inherited: 2,
  amplified: 3,
  healed: 4,
  leftOnly: 5,
  rightOnly: 6,
  noData: 7,
  notComparable: 8,
} as const;

export const GRADE = { equal: 0, rounding: 1, noise: 2, diverged: 3, incomparable: 4, none: 255 } as const;

export const DIRECTION = { forward: 0, backward: 1 } as const;
