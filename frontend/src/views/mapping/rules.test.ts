import { describe, expect, it } from "vitest";
import type { NodeDetail } from "../../api/types";
import { namesOf, withRule } from "./rules";

function node(left: string[], right: string[], module = "model.x"): NodeDetail {
  const records = (names: string[]) => names.map((name) => ({ name, class: null, call: 0 }));
  return { module, left: records(left), right: records(right) } as unknown as NodeDetail;
}

describe("a rule made by hand", () => {
  it("names the modules as the dumps do, each once", () => {
    const found = node(
      ["Module.m.q.Linear.forward.0", "Module.m.q.Linear.forward.1", "Module.m.k.Linear.forward.0", "Module.m.q.parameters_grad"],
      ["Module.m.qkv.Linear.forward.0"],
    );
    expect(namesOf(found, "left")).toEqual(["Module.m.q.Linear.forward.0", "Module.m.k.Linear.forward.0"]);
    expect(namesOf(found, "right")).toEqual(["Module.m.qkv.Linear.forward.0"]);
  });

  it("names a container by its path, and nothing where a side has none", () => {
    expect(namesOf(node([], []), "left")).toEqual(["model.x"]);
    expect(namesOf(node(["Module.m.q.Linear.forward.0"], []), "right")).toEqual([]);
  });

  it("is added to the mapping before, whatever form that has", () => {
    const rule = { pair: true, left: ["a"], right: ['b "c"'], descendants: true };
    expect(withRule(undefined, rule)).toBe('pairs:\n- {left: ["a"], right: ["b \\"c\\""], descendants: true}\n');
    expect(withRule("TopLayer: {x: y}\n", { ...rule, pair: false, right: [] })).toBe(
      'TopLayer: {x: y}\n---\nunpaired:\n- {left: ["a"], descendants: true}\n',
    );
  });
});
