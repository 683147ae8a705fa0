import { isLayerRow, type LayerRuns, layerRuns } from "../../model/fold";
import { Matcher } from "../../model/match";
import { initialOpening } from "../../model/opening";
import { parseQuery, type Query } from "../../model/query";
import { asRow, at, DIRECTION, NO_ROW, type Row } from "../../model/rows";
import type { Tree } from "../../model/tree";
import { keepWithAncestors, type Opening, openingsFor } from "../../model/visible";
import { ExecutionOrder, originRows } from "../../model/walk";
import type { ViewState } from "../../url-state";

/** What is worked out once a tree. */
export interface TreeIndex {
  readonly tree: Tree;
  readonly runs: LayerRuns;
  readonly execution: ExecutionOrder;
  readonly matcher: Matcher;
  /** Row of each origin of the verdict; NO_ROW where the tree has none. */
  readonly origins: readonly Row[];
  /** Opened when a link says nothing. */
  readonly initial: ReadonlySet<number>;
}

export function indexTree(tree: Tree, originCount: number): TreeIndex {
  const runs = layerRuns(tree);
  const origins = originRows(tree, originCount);
  const first = origins.find((row) => row !== NO_ROW) ?? NO_ROW;
  return {
    tree,
    runs,
    execution: new ExecutionOrder(tree),
    matcher: new Matcher(tree),
    origins,
    initial: initialOpening(tree, runs, first),
  };
}

/**
 * The address keeps one set: opened rows as they are, and an unfolded run of layers as the run's first row plus the number of rows. What lies
 * outside the tree is left out: a link may be older than the tree.
 */
export function readOpening(index: TreeIndex, view: ViewState): Pick<Opening, "opened" | "unfolded"> {
  if (view.opened === null) return { opened: index.initial, unfolded: NOTHING };
  const { rows } = index.tree;
  const opened = new Set<number>();
  const unfolded = new Set<number>();
  for (const value of view.opened) {
    if (value < rows) opened.add(value);
    else if (value < 2 * rows) unfolded.add(value - rows);
  }
  return { opened, unfolded };
}

const NOTHING: ReadonlySet<number> = new Set();

export function writeOpening(index: TreeIndex, opened: ReadonlySet<number>, unfolded: ReadonlySet<number>): number[] {
  const values = [...opened, ...[...unfolded].map((row) => row + index.tree.rows)];
  return values.sort((a, b) => a - b);
}

/**
 * The selected row: what the link says, else the first divergence that was not set aside, else the layer that pairing by name would have
 * misjudged most (`telling`), else the first difference of any size.
 */
export function selectedRow(index: TreeIndex, view: ViewState, telling: number | null, firstDifferenceOrder: number | null): Row {
  if (view.node !== null && view.node < index.tree.rows) return asRow(view.node);
  for (let origin = 0; origin < index.origins.length; origin += 1) {
    const row = index.origins[origin] as Row;
    if (row !== NO_ROW && !view.ignored.includes(origin)) return row;
  }
  const layer = telling === null ? undefined : layerRows(index.tree).get(telling);
  if (layer !== undefined) return layer;
  if (firstDifferenceOrder !== null) {
    const place = index.execution.lowerBound(firstDifferenceOrder);
    const row = index.execution.rows[place];
    if (row !== undefined && at(index.tree.order, row) === firstDifferenceOrder) return asRow(row);
  }
  return NO_ROW;
}

/** Row of each layer's first forward call. */
export function layerRows(tree: Tree): Map<number, Row> {
  const rows = new Map<number, Row>();
  for (let row = 0; row < tree.rows; row += 1) {
    const layer = at(tree.layer, row);
    if (layer >= 0 && isLayerRow(tree, row) && !rows.has(layer) && at(tree.direction, row) === DIRECTION.forward)
      rows.set(layer, asRow(row));
  }
  return rows;
}

/** Opened rows with those added that bring `row` on the page; the same set where it is there already. */
export function openedToShow(index: TreeIndex, opened: ReadonlySet<number>, unfolded: ReadonlySet<number>, row: Row): ReadonlySet<number> {
  const missing = openingsFor(index.tree, index.runs, row).filter((above) => !opened.has(above));
  const layer = missing.at(-1) === row ? index.runs.get(row) : undefined;
  // In an unfolded run the layer stands there as itself and need not be opened.
  const needed = layer !== undefined && unfolded.has(layer.layers[0] as Row) ? missing.slice(0, -1) : missing;
  return needed.length === 0 ? opened : new Set([...opened, ...needed]);
}

export interface Filter {
  readonly query: Query;
  /** 1 = matches; null = no filter at all. */
  readonly matches: Uint8Array | null;
  /** Matches and what stands above them; null = no filter at all. */
  readonly keep: Uint8Array | null;
  readonly count: number;
}

export function runFilter(index: TreeIndex, text: string, brush: readonly [number, number] | null): Filter {
  const query = parseQuery(text);
  let matches = index.matcher.run(query);
  const { tree } = index;
  if (brush !== null) {
    matches ??= new Uint8Array(tree.rows).fill(1);
    for (let row = 0; row < tree.rows; row += 1) {
      const order = at(tree.order, row);
      if (order < brush[0] || order > brush[1]) matches[row] = 0;
    }
  }
  if (matches === null) return { query, matches: null, keep: null, count: tree.rows };
  let count = 0;
  for (let row = 0; row < tree.rows; row += 1) count += matches[row] as number;
  return { query, matches, keep: keepWithAncestors(tree, matches), count };
}

/** The origin after (or before) the selected row in execution order, without those set aside; −1 = there is none at all. */
export function neighbourOrigin(
  index: TreeIndex,
  selected: Row,
  ignored: readonly number[],
  step: 1 | -1,
): { origin: number; wrapped: boolean } {
  const candidates = index.origins.flatMap((row, origin) => (row === NO_ROW || ignored.includes(origin) ? [] : [origin]));
  if (candidates.length === 0) return { origin: -1, wrapped: false };
  const own = candidates.findIndex((origin) => index.origins[origin] === selected);
  if (own >= 0) {
    const next = own + step;
    const wrapped = next < 0 || next >= candidates.length;
    return { origin: candidates[(next + candidates.length) % candidates.length] as number, wrapped };
  }
  const order = selected === NO_ROW ? -1 : at(index.tree.order, selected);
  const orders = candidates.map((origin) => at(index.tree.order, index.origins[origin] as Row));
  const after = orders.findIndex((candidate) => candidate > order);
  if (step === 1)
    return after < 0 ? { origin: candidates[0] as number, wrapped: true } : { origin: candidates[after] as number, wrapped: false };
  const before = (after < 0 ? candidates.length : after) - 1;
  return before < 0 ? { origin: candidates.at(-1) as number, wrapped: true } : { origin: candidates[before] as number, wrapped: false };
}
