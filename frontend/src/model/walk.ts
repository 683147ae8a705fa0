import { asRow, at, KIND, NO_ROW, type Row } from "./rows";
import type { Tree } from "./tree";

/** Rows without a parent, in order. */
export function roots(tree: Tree): Row[] {
  const found: Row[] = [];
  for (let row = 0; row < tree.rows; row += at(tree.size, row)) found.push(asRow(row));
  return found;
}

export function children(tree: Tree, row: Row): Row[] {
  const found: Row[] = [];
  const end = row + at(tree.size, row);
  for (let child = row + 1; child < end; child += at(tree.size, child)) found.push(asRow(child));
  return found;
}

export function isLeaf(tree: Tree, row: Row): boolean {
  return at(tree.size, row) === 1;
}

/** Rows above, nearest first. */
export function ancestors(tree: Tree, row: Row): Row[] {
  const found: Row[] = [];
  for (let above = at(tree.parent, row); above >= 0; above = at(tree.parent, above)) found.push(asRow(above));
  return found;
}

/** The row and everything above it, outermost first: a bread crumb. */
export function path(tree: Tree, row: Row): Row[] {
  return [...ancestors(tree, row).reverse(), row];
}

export function isInside(tree: Tree, row: Row, container: Row): boolean {
  return row >= container && row < container + at(tree.size, container);
}

/** The row of the layer that holds this row (itself included), or NO_ROW outside the layers. */
export function layerRowOf(tree: Tree, row: Row): Row {
  if (at(tree.layer, row) < 0) return NO_ROW;
  let top: number = row;
  for (let above = at(tree.parent, row); above >= 0 && at(tree.layer, above) >= 0; above = at(tree.parent, above)) top = above;
  return asRow(top);
}

/** Rows that were compared, in execution order. One sort for the whole page; `rows[k]` belongs to the k-th compared output. */
export class ExecutionOrder {
  /** Rows with an order, by order; a part never stands for the row it belongs to. */
  readonly rows: Int32Array;
  readonly #tree: Tree;

  constructor(tree: Tree) {
    this.#tree = tree;
    let count = 0;
    for (let row = 0; row < tree.rows; row += 1) if (isDot(tree, row)) count += 1;
    const rows = new Int32Array(count);
    let next = 0;
    for (let row = 0; row < tree.rows; row += 1) {
      if (isDot(tree, row)) {
        rows[next] = row;
        next += 1;
      }
    }
    const { order } = tree;
    this.rows = rows.sort((a, b) => at(order, a) - at(order, b) || a - b);
  }

  /** Index of the first row whose order is not below `order`. */
  lowerBound(order: number): number {
    let low = 0;
    let high = this.rows.length;
    while (low < high) {
      const middle = (low + high) >> 1;
      if (at(this.#tree.order, at(this.rows, middle)) < order) low = middle + 1;
      else high = middle;
    }
    return low;
  }

  next(row: Row): Row {
    const position = this.#position(row);
    return position + 1 < this.rows.length ? asRow(at(this.rows, position + 1)) : NO_ROW;
  }

  previous(row: Row): Row {
    const position = this.#position(row);
    return position > 0 ? asRow(at(this.rows, position - 1)) : NO_ROW;
  }

  #position(row: Row): number {
    let position = this.lowerBound(at(this.#tree.order, row));
    while (
      position < this.rows.length &&
      at(this.rows, position) < row &&
      at(this.#tree.order, at(this.rows, position)) === at(this.#tree.order, row)
    ) {
      position += 1;
    }
    return position;
  }
}

function isDot(tree: Tree, row: number): boolean {
  return at(tree.order, row) >= 0 && at(tree.kind, row) !== KIND.part;
}

/** Row of each origin of the verdict (index = origin), NO_ROW where the tree has none. */
export function originRows(tree: Tree, count: number): Row[] {
  const rows = new Array<Row>(count).fill(NO_ROW);
  for (let row = 0; row < tree.rows; row += 1) {
    const origin = at(tree.origin, row);
    if (origin >= 0 && origin < count && rows[origin] === NO_ROW) rows[origin] = asRow(row);
  }
  return rows;
}
