import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { layer, treeBytes } from "./encode-for-tests";
import { layerRuns, summarise } from "./fold";
import { initialOpening } from "./opening";
import { asRow, NO_ROW, ROLE, type Row } from "./rows";
import { decodeTree, nameOf, type Tree } from "./tree";
import { keepWithAncestors, type Opening, openingsFor, placeOf, type VisibleRows, visibleRows } from "./visible";
import { originRows } from "./walk";

const inherited = { role: ROLE.inherited, grade: 3, difference: 0.04 };
const healed = { role: ROLE.healed, grade: 2, difference: 0.006 };

/** 24 layers: quiet 0–10, an origin in 11, inherited 12–20, healed 21–23: the case of the pictures. */
function pictured(): Tree {
  const layers = Array.from({ length: 24 }, (_, index) => {
    if (index < 11) return layer(index);
    if (index === 11) return layer(index, inherited, { role: ROLE.origin, origin: 0, grade: 3, difference: 0.06 });
    return layer(index, index <= 20 ? inherited : healed);
  });
  return decodeTree(treeBytes([{ name: "model", children: [{ name: "embed_tokens" }, ...layers, { name: "norm" }] }]));
}

function shown(tree: Tree, view: VisibleRows): string[] {
  return Array.from({ length: view.length }, (_, place) => {
    const strip = view.strips.get(place);
    const name = nameOf(tree, view.rows[place] as number);
    const text = strip === undefined ? name : `${name} +${strip.layers.length}${strip.open ? " open" : ""}`;
    return "  ".repeat(view.depth[place] as number) + text;
  });
}

function opening(opened: number[], unfolded: number[] = []): Opening {
  return { opened: new Set(opened), unfolded: new Set(unfolded), closed: new Set() };
}

describe("folding of layers", () => {
  const tree = pictured();
  const runs = layerRuns(tree);
  const origin = originRows(tree, 1)[0] as Row;

  it("folds neighbours that read alike and leaves the layer with the origin alone", () => {
    expect(shown(tree, visibleRows(tree, runs, opening([0]), null))).toEqual([
      "model",
      "  embed_tokens",
      "  layers.0 +11",
      "  layers.11",
      "  layers.12 +9",
      "  layers.21 +3",
      "  norm",
    ]);
  });

  it("opens what the picture opens: the origin's layer whole, the one after it one level", () => {
    const view = visibleRows(tree, runs, { opened: initialOpening(tree, runs, origin), unfolded: new Set(), closed: new Set() }, null);
    expect(shown(tree, view)).toEqual([
      "model",
      "  embed_tokens",
      "  layers.0 +11",
      "  layers.11",
      "    input_layernorm",
      "    self_attn",
      "      q_proj, k_proj, v_proj",
      "    mlp",
      "      down_proj",
      "  layers.12",
      "    input_layernorm",
      "    self_attn",
      "    mlp",
      "  layers.13 +8",
      "  layers.21 +3",
      "  norm",
    ]);
  });

  it("lays an unfolded run out one row a layer under the row that folds it again", () => {
    const first = (runs.values().next().value as { layers: Row[] }).layers[0] as Row;
    const view = visibleRows(tree, runs, opening([0], [first]), null);
    expect(shown(tree, view).slice(1, 5)).toEqual(["  embed_tokens", "  layers.0 +11 open", "    layers.0", "    layers.1"]);
    expect(shown(tree, view)[13]).toBe("    layers.10");
    expect(shown(tree, view)[14]).toBe("  layers.11");
    expect(placeOf(view, first)).toBe(3);
  });

  it("never puts a single layer into a strip of one", () => {
    const [, second] = [...(runs.get(tree.rows - 1 - 6 * 3)?.layers ?? [])];
    const view = visibleRows(tree, runs, opening([0, second as number]), null);
    const lines = shown(tree, view);
    expect(lines.filter((line) => line.includes("+1"))).toEqual(["  layers.0 +11"]);
  });

  it("brings any row on the page by opening what openingsFor names", () => {
    fc.assert(
      fc.property(fc.integer({ min: 0, max: tree.rows - 1 }), (row) => {
        const view = visibleRows(tree, runs, opening(openingsFor(tree, runs, asRow(row))), null);
        const place = placeOf(view, asRow(row));
        expect(place).toBeGreaterThanOrEqual(0);
        expect(view.strips.has(place)).toBe(false);
      }),
    );
  });

  it("says the worst layer of a strip and adds its counts up", () => {
    const run = [...new Set(runs.values())].find((candidate) => nameOf(tree, candidate.layers[0] as Row) === "layers.12");
    const summary = summarise(tree, run?.layers ?? []);
    expect(summary.difference).toBeCloseTo(0.04, 6);
    expect(summary.inherited).toBe(9);
    expect(summary.origins).toBe(0);
  });

  it("folds a backward pass, whose layers count down", () => {
    const layers = [3, 2, 1, 0].map((index) => layer(index, { direction: 1 }));
    const backward = decodeTree(treeBytes([{ name: "model", direction: 1, children: layers }]));
    expect(shown(backward, visibleRows(backward, layerRuns(backward), opening([0]), null))).toEqual(["model", "  layers.3 +4"]);
  });

  it("never folds across a missing layer or another sibling", () => {
    const gapped = decodeTree(
      treeBytes([{ name: "model", children: [layer(0), layer(1), layer(4), layer(5), { name: "rotary_emb" }, layer(6)] }]),
    );
    expect(shown(gapped, visibleRows(gapped, layerRuns(gapped), opening([0]), null))).toEqual([
      "model",
      "  layers.0 +2",
      "  layers.4 +2",
      "  rotary_emb",
      "  layers.6",
    ]);
  });
});

describe("visible rows", () => {
  const tree = pictured();
  const runs = layerRuns(tree);

  it("opens every layer that is neither folded nor closed, in row order, whatever is opened", () => {
    const rows = fc.array(fc.integer({ min: 0, max: tree.rows - 1 }));
    fc.assert(
      fc.property(rows, rows, (opened, unfolded) => {
        const view = visibleRows(tree, runs, opening(opened, unfolded), null);
        const covered = new Set<number>();
        for (let place = 0; place < view.length; place += 1) {
          const strip = view.strips.get(place);
          if (strip === undefined) covered.add(view.rows[place] as number);
          else if (!strip.open) for (const layerRow of strip.layers) covered.add(layerRow);
          if (place > 0) expect(view.rows[place] as number).toBeGreaterThanOrEqual(view.rows[place - 1] as number);
        }
        // Each row is on the page exactly when its parent is there and opened (a folded layer is never opened).
        for (let row = 0; row < tree.rows; row += 1) {
          const parent = tree.parent[row] as number;
          const expected = parent < 0 || (covered.has(parent) && opened.includes(parent));
          expect(covered.has(row)).toBe(expected);
        }
      }),
    );
  });

  it("shows under a filter the matches with what is above them, and no strips", () => {
    const matches = new Uint8Array(tree.rows);
    for (let row = 0; row < tree.rows; row += 1) if (nameOf(tree, row) === "down_proj" && (tree.layer[row] as number) < 2) matches[row] = 1;
    const view = visibleRows(tree, runs, opening([]), keepWithAncestors(tree, matches));
    expect(shown(tree, view)).toEqual(["model", "  layers.0", "    mlp", "      down_proj", "  layers.1", "    mlp", "      down_proj"]);
  });

  it("shows what a match holds when the match is opened by hand", () => {
    const matches = new Uint8Array(tree.rows);
    for (let row = 0; row < tree.rows; row += 1) if (nameOf(tree, row) === "self_attn" && tree.layer[row] === 3) matches[row] = 1;
    const match = matches.indexOf(1);
    const keep = keepWithAncestors(tree, matches);
    expect(shown(tree, visibleRows(tree, runs, opening([match]), keep)).at(-1)).toBe("      q_proj, k_proj, v_proj");
    const closed: Opening = { opened: new Set(), unfolded: new Set(), closed: new Set([0]) };
    expect(shown(tree, visibleRows(tree, runs, closed, keep))).toEqual(["model"]);
  });

  it("without a place to look at opens the way to the layers and no layer", () => {
    const opened = initialOpening(tree, runs, NO_ROW);
    expect([...opened]).toEqual([0]);
  });
});
