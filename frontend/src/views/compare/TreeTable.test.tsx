import { render, screen } from "@testing-library/react";
import { beforeEach, describe, expect, it } from "vitest";
import { en } from "../../i18n/messages/en";
import { zh } from "../../i18n/messages/zh";
import { type RowLiteral, treeBytes } from "../../model/encode-for-tests";
import { asRow, KIND } from "../../model/rows";
import { decodeTree } from "../../model/tree";
import type { VisibleRows } from "../../model/visible";
import { setLanguage } from "../../ui/preferences";
import { graphBox } from "./Graph";
import { TreeRow } from "./TreeRow";
import { Head } from "./TreeTable";

const COLUMNS = { gutter: 28, train: 258, inference: 146, bar: 150, value: 68, growth: 54, inside: 90, pad: 12 };

function headings(sides: { left: string; right: string }): (string | null)[] {
  render(<Head columns={COLUMNS} sides={sides} />);
  return screen
    .getAllByRole("columnheader")
    .slice(1, 3)
    .map((cell) => cell.textContent);
}

/** q, k and v of 64 columns each on one side, their fused projection on the other. */
function fused(side: "left" | "right"): RowLiteral {
  const names = ["q_proj", "k_proj", "v_proj"];
  const left = side === "left";
  const [several, one] = ["q_proj, k_proj, v_proj", "qkv_proj"];
  return {
    name: left ? several : one,
    rightName: left ? one : several,
    leftCount: left ? 3 : 1,
    rightCount: left ? 1 : 3,
    children: names.map((name, place) => ({
      name,
      rightName: `${place * 64}–${place * 64 + 63}`,
      kind: KIND.part,
      leftCount: left ? 1 : 0,
      rightCount: left ? 0 : 1,
    })),
  };
}

const treeOf = (side: "left" | "right") => decodeTree(treeBytes([fused(side)]));

function cells(side: "left" | "right", row: number): (string | null)[] {
  render(
    <TreeRow
      tree={treeOf(side)}
      row={asRow(row)}
      place={row}
      depth={1}
      strip={null}
      expanded={null}
      selected={false}
      context={false}
      origin={null}
      sides={{ left: "inference", right: "train" }}
      words={en.compare}
    />,
  );
  return screen
    .getAllByRole("gridcell")
    .slice(1, 3)
    .map((cell) => cell.textContent);
}

describe("the heads of the tree's columns", () => {
  beforeEach(() => setLanguage("en"));

  it("name each side by its own run's role, also where the inference dump is on the left", () => {
    expect(headings({ left: "inference", right: "train" })).toEqual(["Inference", "Train, if different"]);
  });

  it("say left and right of two runs of one role", () => {
    expect(headings({ left: "left", right: "right" })).toEqual(["Left", "Right, if different"]);
  });

  it("do so in Chinese as well", () => {
    setLanguage("zh");
    expect(headings({ left: zh.compare.sides.infer, right: zh.compare.sides.train })).toEqual(["推理", "训练（不同时）"]);
    setLanguage("en");
  });
});

describe("a part of a fused module", () => {
  it("stands with its name on the left and its columns on the right, where the right side is fused", () => {
    expect(cells("left", 2)).toEqual(["k_proj", "columns 64–127"]);
  });

  it("stands with its columns on the left and its name on the right, where the left side is fused", () => {
    const [left, right] = cells("right", 2);
    expect(left).toContain("columns 64–127");
    expect(right).toBe("k_proj");
  });

  it("is drawn on its own side of the graph, and on the other the columns that it fills there", () => {
    const view = {
      rows: Int32Array.of(0, 1, 2, 3),
      depth: Uint8Array.of(0, 1, 1, 1),
      length: 4,
      strips: new Map(),
    } as unknown as VisibleRows;
    const of = (side: "left" | "right") => graphBox(treeOf(side), view, 2, en.compare);
    expect(of("left")).toMatchObject({ left: ["k_proj"], right: ["columns 64–127"] });
    expect(of("right")).toMatchObject({ left: ["columns 64–127"], right: ["k_proj"] });
  });
});
