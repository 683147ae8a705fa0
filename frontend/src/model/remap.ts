import { at, KIND, NO_ROW, type Row } from "./rows";
import { moduleOf, type Tree } from "./tree";

/** What a rule made by hand would do to the rows on screen, worked out before anything is compared again. */
export interface Change {
  /** Rows that get a partner which they do not have now. */
  readonly made: number;
  /** Pairs that come apart. */
  readonly apart: number;
}

/** A row that a rule can name: a module, or a container of modules. Single calls and parts of fused rows cannot. */
export function canRule(tree: Tree, row: Row): boolean {
  if (row === NO_ROW) return false;
  const kind = at(tree.kind, row);
  return kind === KIND.module || kind === KIND.container;
}

export function isPair(tree: Tree, row: number): boolean {
  return at(tree.left_count, row) > 0 && at(tree.right_count, row) > 0;
}

/** A container stands for both sides; any other row for those that hold records. */
function stands(tree: Tree, row: Row, side: "left" | "right"): boolean {
  const count = at(side === "left" ? tree.left_count : tree.right_count, row);
  return count > 0 || (at(tree.left_count, row) === 0 && at(tree.right_count, row) === 0);
}

/** Which of two rows is the left end and which the right: the row chosen first is the left one where both would do. */
export function endsOf(tree: Tree, first: Row, second: Row): { left: Row; right: Row } | null {
  if (stands(tree, first, "left") && stands(tree, second, "right")) return { left: first, right: second };
  if (stands(tree, second, "left") && stands(tree, first, "right")) return { left: second, right: first };
  return null;
}

export function unmatchChange(tree: Tree, row: Row, descendants: boolean): Change {
  let apart = 0;
  for (const one of rowsOf(tree, row, descendants)) if (isPair(tree, one)) apart += 1;
  return { made: 0, apart };
}

export function matchChange(tree: Tree, left: Row, right: Row, descendants: boolean): Change {
  if (left === right) return { made: 0, apart: 0 };
  const ends = [named(tree, left, descendants, "left"), named(tree, right, descendants, "right")] as const;
  let made = 0;
  const apart = new Set<number>();
  for (const [name, row] of ends[0]) {
    const partner = ends[1].get(name);
    if (partner === undefined || partner === row) continue;
    made += 1;
    if (isPair(tree, row)) apart.add(row);
    if (isPair(tree, partner)) apart.add(partner);
  }
  return { made, apart: apart.size };
}

/** Rows of one side by their path below the chosen one. */
function named(tree: Tree, top: Row, descendants: boolean, side: "left" | "right"): Map<string, number> {
  const counts = side === "left" ? tree.left_count : tree.right_count;
  const prefix = moduleOf(tree, top);
  const found = new Map<string, number>();
  for (const row of rowsOf(tree, top, descendants)) {
    if (at(counts, row) > 0) found.set(row === top ? "" : moduleOf(tree, row).slice(prefix.length), row);
  }
  return found;
}

function* rowsOf(tree: Tree, top: Row, descendants: boolean): Generator<number> {
  const end = descendants ? top + at(tree.size, top) : top + 1;
  for (let row: number = top; row < end; row += 1) if (at(tree.kind, row) === KIND.module) yield row;
}
