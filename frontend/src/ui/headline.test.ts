import { describe, expect, it } from "vitest";
import { comparisonName, splitHeadline } from "./headline";

describe("a verdict's sentence", () => {
  it("is split at its dash into where and what", () => {
    expect(splitHeadline("First divergence: layers.2 \u00b7 mlp.down_proj \u2014 weights differ \u2014 much")).toEqual([
      "First divergence: layers.2 \u00b7 mlp.down_proj",
      " \u2014 weights differ \u2014 much",
    ]);
    expect(splitHeadline("Identical")).toEqual(["", "Identical"]);
  });
});

describe("a comparison's name", () => {
  it("of an example is the half in the reader's language, of any other its own", () => {
    const example = { name: "Qwen2 | \u5343\u95ee", example: "down2" };
    expect([comparisonName(example, "en"), comparisonName(example, "zh")]).toEqual(["Qwen2", "\u5343\u95ee"]);
    expect(comparisonName({ name: "a | b", example: "" }, "zh")).toBe("a | b");
    expect(comparisonName({ name: "renamed", example: "down2" }, "zh")).toBe("renamed");
  });
});
