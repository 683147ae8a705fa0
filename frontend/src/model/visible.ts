import type { LayerRun, LayerRuns } from "./fold";
import { asRow, at, NO_ROW, type Row } from "./rows";
import type { Tree } from "./tree";
import { ancestors, layerRowOf } from "./walk";

/** What is opened: rows by index, and runs of layers (by the run's first layer) laid out one row a layer. */
export interface Opening {
  readonly opened: ReadonlySet<number>;
  readonly unfolded: ReadonlySet<number>;
  /** Rows closed by hand while a filter holds their kept descendants open. */
  readonly closed: ReadonlySet<number>;
}

/** A row that stands for several layers. `open`: its layers follow it one by one, and it is the handle that folds them again. */
export interface Strip {
  readonly layers: readonly Row[];
  readonly run: LayerRun;
  readonly open: boolean;
}

/** The rows on the page from top to bottom. `rows[p]` is the row at place p; for a strip its first layer. */
export interface VisibleRows {
  readonly length: number;
  readonly rows: Int32Array;
  readonly depth: Uint8Array;
  /** Only places that hold a strip. */
  readonly strips: ReadonlyMap<number, Strip>;
}

/** Rows that match or have a match below: what a filter leaves on the page. `matches` holds 1 for a match. */
export function keepWithAncestors(tree: Tree, matches: Uint8Array): Uint8Array {
  const keep = matches.slice();
  for (let row = tree.rows - 1; row > 0; row -= 1) {
    if (keep[row] !== 0) {
      const above = at(tree.parent, row);
      if (above >= 0 && keep[above] === 0) keep[above] = 2;
    }
  }
  return keep;
}

/**
 * The visible rows from what is opened and, under a filter, what is kept. Touches only rows that are shown or skipped as a whole, so it costs
 * what it shows. Layers fold only without a filter: a filter's answer is a list of rows, and a strip would hide them.
 */
export function visibleRows(tree: Tree, runs: LayerRuns, opening: Opening, keep: Uint8Array | null): VisibleRows {
  return keep === null ? unfiltered(tree, runs, opening) : filtered(tree, opening, keep);
}

function unfiltered(tree: Tree, runs: LayerRuns, { opened, unfolded }: Opening): VisibleRows {
  const out = new RowSink();
  let shift = 0;
  let shiftEnd = -1;
  let row = 0;
  while (row < tree.rows) {
    if (row >= shiftEnd) shift = 0;
    const run = shift === 0 ? runs.get(row) : undefined;
    if (run !== undefined) {
      const first = run.layers[0] as Row;
      if (unfolded.has(first)) {
        if (row === first) {
          const last = run.layers[run.layers.length - 1] as Row;
          out.push(row, at(tree.depth, row), { layers: run.layers, run, open: true });
          shift = 1;
          shiftEnd = last + at(tree.size, last);
        }
      } else if (!opened.has(row)) {
        const start = run.layers.indexOf(asRow(row));
        let end = start + 1;
        while (end < run.layers.length && !opened.has(run.layers[end] as Row)) end += 1;
        const last = run.layers[end - 1] as Row;
        if (end - start > 1) out.push(row, at(tree.depth, row), { layers: run.layers.slice(start, end), run, open: false });
        else out.push(row, at(tree.depth, row), null);
        row = last + at(tree.size, last);
        continue;
      }
    }
    out.push(row, at(tree.depth, row) + shift, null);
    row += opened.has(row) ? 1 : at(tree.size, row);
  }
  return out.finish();
}

function filtered(tree: Tree, { opened, closed }: Opening, keep: Uint8Array): VisibleRows {
  const out = new RowSink();
  let row = 0;
  /** Rows below this one are shown whole: their container matches, holds no other match and was opened by hand. */
  let wholeEnd = -1;
  while (row < tree.rows) {
    const whole = row < wholeEnd;
    if (!whole && keep[row] === 0) {
      row += at(tree.size, row);
      continue;
    }
    out.push(row, at(tree.depth, row), null);
    const end = row + at(tree.size, row);
    if (whole) {
      row = opened.has(row) ? row + 1 : end;
    } else if (holdsKept(tree, keep, row)) {
      row = closed.has(row) ? end : row + 1;
    } else {
      if (opened.has(row)) wholeEnd = end;
      row = opened.has(row) ? row + 1 : end;
    }
  }
  return out.finish();
}

/** Whether a child of this row is on the page because of a filter. */
export function holdsKept(tree: Tree, keep: Uint8Array, row: number): boolean {
  const end = row + at(tree.size, row);
  for (let child = row + 1; child < end; child += at(tree.size, child)) if (keep[child] !== 0) return true;
  return false;
}

class RowSink {
  #rows = new Int32Array(256);
  #depth = new Uint8Array(256);
  #length = 0;
  readonly #strips = new Map<number, Strip>();

  push(row: number, depth: number, strip: Strip | null): void {
    if (this.#length === this.#rows.length) {
      const rows = new Int32Array(this.#length * 2);
      rows.set(this.#rows);
      this.#rows = rows;
      const depths = new Uint8Array(this.#length * 2);
      depths.set(this.#depth);
      this.#depth = depths;
    }
    this.#rows[this.#length] = row;
    this.#depth[this.#length] = depth;
    if (strip !== null) this.#strips.set(this.#length, strip);
    this.#length += 1;
  }

  finish(): VisibleRows {
    return {
      length: this.#length,
      rows: this.#rows.subarray(0, this.#length),
      depth: this.#depth.subarray(0, this.#length),
      strips: this.#strips,
    };
  }
}

/** Place of a row on the page, or −1. A folded layer is at its strip's place; an opened layer at its own, not at the handle above it. */
export function placeOf(view: VisibleRows, row: Row): number {
  let low = 0;
  let high = view.length;
  while (low < high) {
    const middle = (low + high) >> 1;
    if (at(view.rows, middle) <= row) low = middle + 1;
    else high = middle;
  }
  const place = low - 1;
  if (place < 0) return -1;
  const strip = view.strips.get(place);
  if (strip !== undefined) return strip.layers.includes(row) ? place : -1;
  return at(view.rows, place) === row ? place : -1;
}

/** Rows to open so that `row` is on the page as itself. A layer row is opened too: folded away it would only be a cell of a strip. */
export function openingsFor(tree: Tree, runs: LayerRuns, row: Row): Row[] {
  const rows = ancestors(tree, row);
  const layer = layerRowOf(tree, row);
  if (layer !== NO_ROW && layer === row && runs.has(row)) rows.push(row);
  return rows;
}
