import { describe, expect, it } from "vitest";
import { assemble, encode, layer, treeBytes } from "./encode-for-tests";
import { asRow } from "./rows";
import { decodeTree, moduleOf, nameOf, TreeFormatError, textOf } from "./tree";
import { ancestors, children, ExecutionOrder, layerRowOf, originRows, path } from "./walk";

const model = () => ({
  name: "model",
  children: [{ name: "embed_tokens", order: -1 }, layer(0), layer(1, {}, { role: 1, origin: 0, grade: 3, difference: 0.06 })],
});

function code(bytes: ArrayBuffer): string {
  try {
    decodeTree(bytes);
  } catch (error) {
    if (error instanceof TreeFormatError) return error.code;
    throw error;
  }
  return "no error";
}

describe("decodeTree", () => {
  it("reads back every column that an independent writer put down", () => {
    const tree = decodeTree(treeBytes([model()]));
    expect(tree.rows).toBe(2 + 2 * 6);
    expect(nameOf(tree, 0)).toBe("model");
    expect(moduleOf(tree, 3)).toBe("model.layers.0.input_layernorm");
    expect(textOf(tree, tree.right_name, 5)).toBe("qkv_proj");
    expect(textOf(tree, tree.right_name, 4)).toBeNull();
    expect(tree.left_count[5]).toBe(3);
    expect(tree.difference[5]).toBeCloseTo(0.003, 7);
    expect(Number.isNaN(tree.growth[5] as number)).toBe(true);
    expect(tree.inside_origin[0]).toBe(1);
    expect(tree.sides).toEqual({ left: "train", right: "infer" });
    expect(tree.norm).toBeNull();
  });

  it("looks at the bytes where they lie and copies nothing", () => {
    const bytes = treeBytes([model()]);
    expect(decodeTree(bytes).order.buffer).toBe(bytes);
  });

  it("reads a section, which stands for no module, under its own name", () => {
    const tree = decodeTree(treeBytes([{ name: "forward 0", kind: 0, children: [model()] }]));
    expect(tree.module[0]).toBe(-1);
    expect(moduleOf(tree, 0)).toBe("forward 0");
    expect(moduleOf(tree, 4)).toBe("model.layers.0.input_layernorm");
  });

  it("reads an empty tree", () => {
    const parts = assemble([model()]);
    for (const column of Object.values(parts.columns)) column[1] = [];
    expect(decodeTree(encode({ ...parts, header: { ...parts.header, rows: 0 } })).rows).toBe(0);
  });

  it("refuses what is no tree, with a code for each way to be none", () => {
    const good = treeBytes([model()]);
    const spoil = (change: (bytes: Uint8Array) => void) => {
      const copy = good.slice(0);
      change(new Uint8Array(copy));
      return copy;
    };
    expect(code(good)).toBe("no error");
    expect(code(new ArrayBuffer(3))).toBe("tree_truncated");
    expect(code(good.slice(0, good.byteLength - 8))).toBe("tree_truncated");
    expect(code(spoil((bytes) => bytes.set([0x3c], 0)))).toBe("tree_magic");
    expect(code(spoil((bytes) => bytes.set([2], 7)))).toBe("tree_version");
    expect(code(spoil((bytes) => bytes.set([0x5b], 12)))).toBe("tree_header");
  });

  it.each([
    ["a column left out", "tree_column_missing", (parts: ReturnType<typeof assemble>) => delete parts.columns.floor],
    [
      "a column of another type",
      "tree_column_dtype",
      (parts: ReturnType<typeof assemble>) => (parts.columns.layer = ["int32", parts.columns.layer?.[1] ?? []]),
    ],
    ["a column too short", "tree_column_length", (parts: ReturnType<typeof assemble>) => parts.columns.role?.[1].pop()],
    ["a later format", "tree_version", (parts: ReturnType<typeof assemble>) => (parts.header.format = 2)],
    ["a parent after its child", "tree_nesting", (parts: ReturnType<typeof assemble>) => ((parts.columns.parent?.[1] ?? [])[1] = 9)],
    ["a subtree that leaves its parent", "tree_nesting", (parts: ReturnType<typeof assemble>) => ((parts.columns.size?.[1] ?? [])[2] = 99)],
    [
      "a size of zero, which would never end a walk",
      "tree_nesting",
      (parts: ReturnType<typeof assemble>) => ((parts.columns.size?.[1] ?? [])[3] = 0),
    ],
    ["a string that is not there", "tree_string", (parts: ReturnType<typeof assemble>) => ((parts.columns.name?.[1] ?? [])[1] = 999)],
    ["a reason that is not there", "tree_reason", (parts: ReturnType<typeof assemble>) => ((parts.columns.reason?.[1] ?? [])[1] = 7)],
  ])("refuses %s", (_, expected, spoil) => {
    const parts = assemble([model()]);
    spoil(parts);
    expect(code(encode(parts))).toBe(expected);
  });
});

describe("walking", () => {
  const tree = decodeTree(treeBytes([model()]));
  const names = (rows: readonly number[]) => rows.map((row) => nameOf(tree, row));

  it("gives children, ancestors and the path of a row", () => {
    expect(names(children(tree, asRow(0)))).toEqual(["embed_tokens", "layers.0", "layers.1"]);
    expect(names(ancestors(tree, asRow(5)))).toEqual(["self_attn", "layers.0", "model"]);
    expect(names(path(tree, asRow(5)))).toEqual(["model", "layers.0", "self_attn", "q_proj, k_proj, v_proj"]);
  });

  it("finds the layer that holds a row, and none outside the layers", () => {
    expect(nameOf(tree, layerRowOf(tree, asRow(5)))).toBe("layers.0");
    expect(layerRowOf(tree, asRow(1))).toBe(-1);
  });

  it("steps through execution order, not through the order of rows", () => {
    const execution = new ExecutionOrder(tree);
    expect([...execution.rows].map((row) => tree.order[row])).toEqual([0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11]);
    const qkv = asRow(5);
    expect(nameOf(tree, execution.next(qkv))).toBe("self_attn");
    expect(nameOf(tree, execution.previous(qkv))).toBe("input_layernorm");
    expect(execution.previous(asRow(3))).toBe(-1);
  });

  it("finds the row of each origin", () => {
    expect(originRows(tree, 2).map((row) => (row < 0 ? null : moduleOf(tree, row)))).toEqual(["model.layers.1.mlp.down_proj", null]);
  });
});
