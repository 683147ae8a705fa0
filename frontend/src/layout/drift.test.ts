import { describe, expect, it } from "vitest";
import { driftScale, linePath } from "./drift";

describe("a line over steps", () => {
  const scale = driftScale([0, 1, 2, 3], [0, 0.001, 0.01, 0.1], 306, 34);

  it("has its steps at even distances and 0 on the ground, below the smallest difference", () => {
    expect([0, 1, 2, 3].map(scale.x)).toEqual([3, 103, 203, 303]);
    expect(scale.y(0)).toBeGreaterThan(scale.y(0.001) + 3);
    expect(scale.y(0.001) - scale.y(0.01)).toBeCloseTo(scale.y(0.01) - scale.y(0.1));
    expect(scale.y(0.1)).toBeCloseTo(3);
  });

  it("puts NaN and Inf at the top: nothing is worse", () => {
    expect(scale.y(Number.NaN)).toBe(3);
    expect(scale.y(Number.POSITIVE_INFINITY)).toBe(3);
  });

  it("breaks where a step has no value", () => {
    expect(linePath(scale, [0, 1, 2, 3], [0, null, 0.01, 0.1]).path.match(/M/g)).toHaveLength(2);
  });

  it("draws one step, and steps that all agree", () => {
    const one = driftScale([7], [0.5], 300, 34);
    expect(linePath(one, [7], [0.5]).path).toMatch(/^M150\.0 /);
    const none = driftScale([0, 1], [0, 0], 300, 34);
    expect(linePath(none, [0, 1], [0, 0]).path).not.toContain("NaN");
  });
});
