import { describe, expect, it } from "vitest";
import { layer, treeBytes } from "../../model/encode-for-tests";
import { asRow, NO_ROW, type Row } from "../../model/rows";
import { decodeTree, moduleOf } from "../../model/tree";
import { placeOf, visibleRows } from "../../model/visible";
import { DEFAULT_VIEW } from "../../url-state";
import { indexTree, neighbourOrigin, openedToShow, readOpening, runFilter, selectedRow, writeOpening } from "./workbench-state";

const bad = (origin: number) => ({ role: 1, origin, grade: 3, difference: 0.06 });
const tree = decodeTree(
  treeBytes([
    {
      name: "model",
      children: Array.from({ length: 12 }, (_, index) =>
        index === 3 ? layer(3, {}, bad(0)) : index === 7 ? layer(7, {}, bad(1)) : layer(index),
      ),
    },
  ]),
);
const index = indexTree(tree, 3);
const [first, second] = index.origins as [Row, Row];
const named = (row: number) => (row < 0 ? null : moduleOf(tree, row));

describe("the selected row", () => {
  it("is the first divergence, unless the link says otherwise or it was set aside", () => {
    expect(named(selectedRow(index, DEFAULT_VIEW, null, null))).toBe("model.layers.3.mlp.down_proj");
    expect(named(selectedRow(index, { ...DEFAULT_VIEW, ignored: [0] }, null, null))).toBe("model.layers.7.mlp.down_proj");
    expect(selectedRow(index, { ...DEFAULT_VIEW, node: 5 }, null, null)).toBe(5);
  });

  it("is nothing that a foreign link names", () => {
    expect(selectedRow(index, { ...DEFAULT_VIEW, node: 99_999 }, null, null)).toBe(first);
  });

  it("is the telling layer, else the first difference, where nothing diverged", () => {
    const quiet = indexTree(tree, 0);
    expect(named(selectedRow(quiet, DEFAULT_VIEW, 9, 4))).toBe("model.layers.9");
    expect(named(selectedRow(quiet, DEFAULT_VIEW, null, 4))).toBe("model.layers.0.mlp");
    expect(selectedRow(quiet, DEFAULT_VIEW, null, null)).toBe(NO_ROW);
  });
});

describe("opened rows in the address", () => {
  it("come back as they were, unfolded runs included", () => {
    const opened = new Set([0, 5, 9]);
    const unfolded = new Set([1, 31]);
    const read = readOpening(index, { ...DEFAULT_VIEW, opened: writeOpening(index, opened, unfolded) });
    expect(read).toEqual({ opened, unfolded });
  });

  it("are the page's own choice where the link holds none, and ascending where it holds some", () => {
    expect(readOpening(index, DEFAULT_VIEW).opened).toBe(index.initial);
    const written = writeOpening(index, new Set([9, 0, 5]), new Set([1]));
    expect(written).toEqual([...written].sort((a, b) => a - b));
  });

  it("leave out what lies outside the tree", () => {
    expect(readOpening(index, { ...DEFAULT_VIEW, opened: [1, 2 * tree.rows + 5] }).opened).toEqual(new Set([1]));
  });

  it("grow by what a hidden row needs, and stay the same set for a row that is there", () => {
    const hidden = asRow(first + 30);
    const opened = openedToShow(index, index.initial, new Set(), hidden);
    const view = visibleRows(tree, index.runs, { opened, unfolded: new Set(), closed: new Set() }, null);
    expect(placeOf(view, hidden)).toBeGreaterThanOrEqual(0);
    expect(openedToShow(index, opened, new Set(), hidden)).toBe(opened);
  });
});

describe("stepping from origin to origin", () => {
  it("goes on in execution order, wraps, and leaves out what was set aside", () => {
    expect(neighbourOrigin(index, first, [], 1)).toEqual({ origin: 1, wrapped: false });
    expect(neighbourOrigin(index, second, [], 1)).toEqual({ origin: 0, wrapped: true });
    expect(neighbourOrigin(index, first, [], -1)).toEqual({ origin: 1, wrapped: true });
    expect(neighbourOrigin(index, first, [0], 1)).toEqual({ origin: 1, wrapped: false });
    expect(neighbourOrigin(index, first, [0, 1], 1).origin).toBe(-1);
  });

  it("starts from wherever the reader is", () => {
    const between = asRow(second - 12);
    expect(neighbourOrigin(index, between, [], 1)).toEqual({ origin: 1, wrapped: false });
    expect(neighbourOrigin(index, between, [], -1)).toEqual({ origin: 0, wrapped: false });
  });
});

describe("the filter", () => {
  it("joins the query and the brushed stretch", () => {
    const brushed = runFilter(index, "down_proj", [0, 23]);
    expect(brushed.count).toBe(4);
    expect(runFilter(index, "down_proj", null).count).toBe(12);
    expect(runFilter(index, "", [0, 5]).count).toBe(6);
  });

  it("is none where nothing was asked", () => {
    expect(runFilter(index, " ", null)).toMatchObject({ matches: null, keep: null, count: tree.rows });
  });
});
