import { describe, expect, it } from "vitest";
import { treeBytes } from "./encode-for-tests";
import { canRule, endsOf, matchChange, unmatchChange } from "./remap";
import { asRow, type Row } from "./rows";
import { decodeTree, moduleOf } from "./tree";

const left = { leftCount: 1, rightCount: 0 };
const right = { leftCount: 0, rightCount: 1 };

const tree = decodeTree(
  treeBytes([
    {
      name: "model",
      children: [
        { name: "a", children: [{ name: "x" }, { name: "y", ...left }, { name: "call", kind: 2 }] },
        {
          name: "b",
          ...right,
          children: [
            { name: "x", ...right },
            { name: "y", ...right },
          ],
        },
        { name: "c", ...left },
      ],
    },
  ]),
);

function row(module: string): Row {
  for (let index = 0; index < tree.rows; index += 1) if (moduleOf(tree, asRow(index)) === module) return asRow(index);
  throw new Error(module);
}

describe("what a rule made by hand would change", () => {
  it("counts the pairs that come apart, with and without what is below", () => {
    expect(unmatchChange(tree, row("model.a"), false)).toEqual({ made: 0, apart: 1 });
    expect(unmatchChange(tree, row("model.a"), true)).toEqual({ made: 0, apart: 2 });
  });

  it("pairs what is below by its path below the two", () => {
    expect(matchChange(tree, row("model.c"), row("model.b"), false)).toEqual({ made: 1, apart: 0 });
    expect(matchChange(tree, row("model.a"), row("model.b"), true)).toEqual({ made: 3, apart: 2 });
    expect(matchChange(tree, row("model.a"), row("model.a"), true)).toEqual({ made: 0, apart: 0 });
  });

  it("knows which of two rows is the left end", () => {
    expect(endsOf(tree, row("model.b"), row("model.c"))).toEqual({ left: row("model.c"), right: row("model.b") });
    expect(endsOf(tree, row("model.a"), row("model.b"))).toEqual({ left: row("model.a"), right: row("model.b") });
    expect(endsOf(tree, row("model.c"), row("model.a.y"))).toBeNull();
  });

  it("leaves single calls alone", () => {
    expect(canRule(tree, row("model.a.call"))).toBe(false);
    expect(canRule(tree, row("model.a.x"))).toBe(true);
  });
});
