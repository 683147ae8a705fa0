import { asRow, at, GRADE, ROLE, type Row } from "./rows";
import type { Tree } from "./tree";

/** Two or more neighbouring layers under one parent that read alike, and so may share one row. */
export interface LayerRun {
  readonly layers: readonly Row[];
}

/** Every layer row that belongs to a run → its run. */
export type LayerRuns = ReadonlyMap<number, LayerRun>;

/**
 * How a layer reads at a glance. Layers of different moods never share a row, or a healed stretch would vanish in an inherited one.
 * A layer that holds an origin stands alone whatever its neighbours are.
 */
type Mood = "quiet" | "dirty" | "healed" | "aside" | "alone";

function mood(tree: Tree, row: number): Mood {
  if (at(tree.origin, row) >= 0 || at(tree.role, row) === ROLE.origin || at(tree.inside_origin, row) > 0) return "alone";
  switch (at(tree.role, row)) {
    case ROLE.inherited:
    case ROLE.amplified:
      return "dirty";
    case ROLE.healed:
      return "healed";
    case ROLE.leftOnly:
    case ROLE.rightOnly:
    case ROLE.noData:
    case ROLE.notComparable:
      return "aside";
    default:
      return at(tree.grade, row) === GRADE.diverged || at(tree.inside_inherited, row) + at(tree.inside_amplified, row) > 0
        ? "dirty"
        : "quiet";
  }
}

/** A layer row proper: its parent stands outside the layers. */
export function isLayerRow(tree: Tree, row: number): boolean {
  if (at(tree.layer, row) < 0) return false;
  const above = at(tree.parent, row);
  return above < 0 || at(tree.layer, above) < 0;
}

/** Static for a tree: which neighbouring layer rows may fold together. O(rows). */
export function layerRuns(tree: Tree): LayerRuns {
  const runs = new Map<number, LayerRun>();
  let open: { layers: Row[]; parent: number; name: string; mood: Mood } | null = null;
  const close = () => {
    if (open !== null && open.layers.length > 1) {
      const run: LayerRun = { layers: open.layers };
      for (const layer of open.layers) runs.set(layer, run);
    }
    open = null;
  };
  let row = 0;
  while (row < tree.rows) {
    if (!isLayerRow(tree, row)) {
      // A sibling between two layers ends the run; so does leaving the parent, which the parent check below sees.
      if (open !== null && at(tree.parent, row) === (open as { parent: number }).parent) close();
      row += 1;
      continue;
    }
    const current = mood(tree, row);
    const parent = at(tree.parent, row);
    const shape = layerShape(tree, row);
    const last = open as { layers: Row[]; parent: number; name: string; mood: Mood } | null;
    const previous = last === null ? null : (last.layers[last.layers.length - 1] as Row);
    // Backward runs count down, so a neighbour is one layer away in either sense.
    const fits =
      last !== null &&
      previous !== null &&
      current !== "alone" &&
      last.mood === current &&
      last.parent === parent &&
      last.name === shape &&
      Math.abs(at(tree.layer, row) - at(tree.layer, previous)) === 1;
    if (fits) last.layers.push(asRow(row));
    else {
      close();
      open = { layers: [asRow(row)], parent, name: shape, mood: current };
    }
    row += at(tree.size, row);
  }
  close();
  return runs;
}

/** The name without its number, so that `layers.3` never folds with `mtp_layers.4`. */
function layerShape(tree: Tree, row: number): string {
  return `${(tree.strings[at(tree.name, row)] as string).replace(/\d+/g, "#")}/${at(tree.direction, row)}`;
}

/** What a folded row says of its layers: one value a cell and the worst of them. */
export interface FoldSummary {
  readonly worstLayer: Row;
  /** Largest own difference, NaN where no layer has one. */
  readonly difference: number;
  readonly floor: number;
  readonly growth: number;
  readonly origins: number;
  readonly inherited: number;
  readonly amplified: number;
}

/** Size of the layer itself: its own output's difference, else the worst inside. */
export function layerDifference(tree: Tree, row: number): number {
  const own = at(tree.difference, row);
  return Number.isNaN(own) ? at(tree.worst, row) : own;
}

export function summarise(tree: Tree, layers: readonly Row[]): FoldSummary {
  let worstLayer = layers[0] as Row;
  let difference = Number.NaN;
  let origins = 0;
  let inherited = 0;
  let amplified = 0;
  for (const layer of layers) {
    const size = layerDifference(tree, layer);
    if (size > difference || (Number.isNaN(difference) && !Number.isNaN(size))) {
      difference = size;
      worstLayer = layer;
    }
    const role = at(tree.role, layer);
    origins += at(tree.inside_origin, layer) + (role === ROLE.origin ? 1 : 0);
    inherited += at(tree.inside_inherited, layer) + (role === ROLE.inherited ? 1 : 0);
    amplified += at(tree.inside_amplified, layer) + (role === ROLE.amplified ? 1 : 0);
  }
  return { worstLayer, difference, floor: at(tree.floor, worstLayer), growth: at(tree.growth, worstLayer), origins, inherited, amplified };
}
