import { isLayerRow, type LayerRuns } from "./fold";
import { at, KIND, NO_ROW, ROLE, type Row } from "./rows";
import type { Tree } from "./tree";
import { openingsFor } from "./visible";
import { children, layerRowOf, roots } from "./walk";

/** A layer is shown whole around the first divergence while it is no longer than this; a layer with API calls opens only the path. */
const WHOLE_LAYER_ROWS = 32;

/**
 * What is open when a link says nothing: everything down to the layers, the layer of the first divergence, and the layer after it one level
 * deep, because what follows an origin is the second thing a reader looks for. Deterministic, so a link need not carry it.
 */
export function initialOpening(tree: Tree, runs: LayerRuns, focus: Row): Set<number> {
  const opened = new Set<number>();
  let first = true;
  const tops = roots(tree);
  for (const root of tops) {
    // Of several calls only the one looked at is opened, else a reader meets a wall of equal sections.
    const holdsFocus = focus !== NO_ROW && focus >= root && focus < root + at(tree.size, root);
    if (focus === NO_ROW ? first : holdsFocus || tops.length === 1) openToLayers(tree, root, opened);
    first = false;
  }
  if (focus === NO_ROW) return opened;
  for (const row of openingsFor(tree, runs, focus)) opened.add(row);
  const layer = layerRowOf(tree, focus);
  if (layer === NO_ROW) return opened;
  const end = layer + at(tree.size, layer);
  if (end - layer <= WHOLE_LAYER_ROWS) {
    for (let row: number = layer; row < end; row += 1) {
      if (at(tree.size, row) > 1 && row !== focus && keepsShort(tree, row)) opened.add(row);
    }
  }
  opened.add(layer);
  if (end < tree.rows && isLayerRow(tree, end) && at(tree.parent, end) === at(tree.parent, layer)) {
    const role = at(tree.role, end);
    if (role === ROLE.inherited || role === ROLE.amplified) opened.add(end);
  }
  return opened;
}

/** A module that holds API calls stays closed: they are many, and the module says the worst of them. */
function keepsShort(tree: Tree, row: number): boolean {
  return at(tree.kind, row + 1) !== KIND.api;
}

function openToLayers(tree: Tree, row: Row, opened: Set<number>): void {
  if (at(tree.layer, row) >= 0 || at(tree.size, row) === 1) return;
  if (at(tree.kind, row) !== KIND.section && !holdsLayers(tree, row)) return;
  opened.add(row);
  for (const child of children(tree, row))
    if (holdsLayers(tree, child) || at(tree.kind, row) === KIND.section) openToLayers(tree, child, opened);
}

function holdsLayers(tree: Tree, row: Row): boolean {
  const end = row + at(tree.size, row);
  for (let child: number = row; child < end; child += 1) if (at(tree.layer, child) >= 0) return true;
  return false;
}
