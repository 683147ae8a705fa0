import { describe, expect, it } from "vitest";
import type { Inventory } from "../api/types";
import { en } from "../i18n/messages/en";
import { sameRole, sideTitles, type Told } from "./side-words";

const read = (role: Inventory["role"]): Told => ({ role: "auto", inventory: { role } as Inventory });
const unread: Told = { role: "auto", inventory: null };
const titles = (left: Told, right: Told) => Object.values(sideTitles(left, right, en));

describe("what the two sides are called", () => {
  it("follows the role of each run, on whichever side it stands", () => {
    expect(titles(read("train"), read("infer"))).toEqual(["Train", "Inference"]);
    expect(titles(read("infer"), read("train"))).toEqual(["Inference", "Train"]);
  });

  it("is left and right for two runs of one role", () => {
    expect(titles(read("train"), read("train"))).toEqual(["Left", "Right"]);
    expect(titles(read("unknown"), read("unknown"))).toEqual(["Left", "Right"]);
    expect(sameRole(read("infer"), read("infer"))).toBe(true);
  });

  it("takes the usual place of a side that nothing is known of, unless the other has it", () => {
    expect(titles(null, null)).toEqual(["Train", "Inference"]);
    expect(titles(unread, read("infer"))).toEqual(["Train", "Inference"]);
    expect(titles(read("infer"), unread)).toEqual(["Left", "Right"]);
    expect(sameRole(unread, unread)).toBe(false);
  });

  it("believes the sender before the dump", () => {
    expect(titles({ role: "infer", inventory: null }, { role: "train", inventory: null })).toEqual(["Inference", "Train"]);
  });
});
