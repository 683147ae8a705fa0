import { describe, expect, it } from "vitest";
import { positionAt, positionBars, positionScale, positionX, positionY } from "./positions";

describe("differences along a row", () => {
  it("stand on whole decades around the smallest and the largest", () => {
    const scale = positionScale(Float64Array.of(0, 0.0012, 0.05), 644, 100, false);
    expect([scale.low, scale.high]).toEqual([-3, -1]);
    expect(scale.ticks).toHaveLength(3);
    expect(positionY(scale, 0.1)).toBeCloseTo(scale.top);
    expect(positionY(scale, 0.01)).toBeCloseTo((scale.top + scale.bottom) / 2);
  });

  it("show no more than five decades, and the smallest still as something", () => {
    const scale = positionScale(Float64Array.of(1e-12, 0.5), 644, 100, false);
    expect(scale.low).toBe(-5);
    expect(positionY(scale, 1e-12)).toBeLessThan(scale.bottom);
  });

  it("reach the top where one side has no number", () => {
    const scale = positionScale(Float64Array.of(0.1, Number.POSITIVE_INFINITY), 644, 100, false);
    expect(positionBars(scale, Float64Array.of(0.1, Number.POSITIVE_INFINITY))[1]).toMatchObject({ infinite: true, y: scale.top });
  });

  it("draw a bar only where something differs, and keep the largest where positions share a pixel", () => {
    const sizes = new Float64Array(4096);
    sizes[2002] = 0.01;
    sizes[2001] = 0.5;
    const scale = positionScale(sizes, 644, 100, false);
    const bars = positionBars(scale, sizes);
    expect(bars).toHaveLength(1);
    expect(bars[0]?.y).toBeCloseTo(positionY(scale, 0.5));
  });

  it("find the position under the pointer again", () => {
    const scale = positionScale(new Float64Array(220), 644, 100, false);
    for (const position of [0, 17, 219]) expect(positionAt(scale, positionX(scale, position))).toBe(position);
    expect(positionAt(scale, -50)).toBe(0);
    expect(positionAt(scale, 9999)).toBe(219);
  });

  it("have no axis where nothing is measured", () => {
    expect(positionScale(Float64Array.of(0, 1), 600, 44, true)).toMatchObject({ left: 0, ticks: [] });
    expect(positionScale(new Float64Array(3), 600, 44, false).ticks).toEqual([]);
  });
});
