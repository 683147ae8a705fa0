import { describe, expect, it } from "vitest";
import type { Inventory } from "../../api/types";
import { choicesOf, digits, heldBy, NO_CHOICES, optionsOf, runIdOf } from "./choices";

const ends = (left: string, right: string) => ({ left, right });

describe("the options of a comparison", () => {
  it("are none where nothing is chosen", () => {
    expect(optionsOf(NO_CHOICES)).toEqual({});
    expect(optionsOf({ ...NO_CHOICES, mapping: " \n" })).toEqual({});
  });

  it("name a choice once for both sides, and left:right where the sides differ", () => {
    expect(optionsOf({ ...NO_CHOICES, step: ends("1", "1"), rank: ends("0", "3") })).toEqual({ step: "1", rank: "0:3" });
  });

  it("give a side without a choice the other's", () => {
    expect(optionsOf({ ...NO_CHOICES, step: ends("1", ""), stage: ends("", "reference") })).toEqual({ step: "1", stage: "reference" });
  });

  it("take a baseline by the link of its run or by its id", () => {
    expect(runIdOf("http://127.0.0.1:8000/r/Ab-9_z#v=1")).toBe("Ab-9_z");
    expect(runIdOf(" /r/Ab-9_z?x ")).toBe("Ab-9_z");
    expect(runIdOf(" Ab-9_z ")).toBe("Ab-9_z");
    expect(optionsOf({ ...NO_CHOICES, exact: true, baseline: "/r/Ab-9_z", mapping: "pairs: []" })).toEqual({
      exact: true,
      baseline: "Ab-9_z",
      mapping: "pairs: []",
    });
  });

  it("come back into the fields as they were sent", () => {
    const options = { step: "0:2", rank: "1", stage: "a:b", exact: true, baseline: "Ab-9_z", mapping: "pairs: []" };
    const unread = { left: null, right: null };
    expect(optionsOf(choicesOf(options, unread))).toEqual(options);
    expect(choicesOf({}, unread)).toEqual(NO_CHOICES);
    expect(choicesOf({ step: 3 }, unread).step).toEqual(ends("3", "3"));
  });

  it("stand at the side that holds them, where one value was meant for one side alone", () => {
    const steps = (...held: number[]) => ({ steps: held, ranks: [], stages: [] }) as unknown as Inventory;
    expect(choicesOf({ step: "1" }, { left: steps(0, 1), right: steps(0) }).step).toEqual(ends("1", ""));
    expect(choicesOf({ step: "1" }, { left: steps(0), right: steps(0, 1) }).step).toEqual(ends("", "1"));
    expect(choicesOf({ step: "7" }, { left: steps(0), right: steps(0, 1) }).step).toEqual(ends("7", ""));
  });

  it("offer what the dump holds, and anything while it is not known", () => {
    const inventory = { steps: [0, 4], ranks: [], stages: ["reference"] } as unknown as Inventory;
    expect(heldBy(inventory, "step")).toEqual(["0", "4"]);
    expect(heldBy(inventory, "rank")).toEqual([]);
    expect(heldBy(inventory, "stage")).toEqual(["reference"]);
    expect(heldBy(null, "step")).toBeNull();
    expect(digits("1:2x")).toBe("12");
  });
});
