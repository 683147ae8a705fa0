import { describe, expect, it } from "vitest";
import { cellLayout, visibleRange } from "./cells";

const stepsOnly = (steps: number) => Array.from({ length: steps }, (_, step) => ({ step, rank: null }));
const ranked = (steps: number, ranks: number) =>
  Array.from({ length: steps * ranks }, (_, at) => ({ step: Math.floor(at / ranks), rank: at % ranks }));

describe("the cells of stage × step × rank", () => {
  it("are as large as fits beside the names", () => {
    expect(cellLayout(stepsOnly(3), 600, false).cell).toBe(54);
    expect(cellLayout(stepsOnly(20), 600, false).cell).toBe(24);
    expect(cellLayout(ranked(8, 4), 600, false).cell).toBe(15);
  });

  it("never get smaller than a sign can be told in: what does not fit is scrolled to", () => {
    const layout = cellLayout(ranked(200, 8), 600, false);
    expect(layout.cell).toBe(15);
    expect(layout.width).toBe(200 * 8 * 17 + 199 * 7);
    expect(layout.x[8]).toBe(8 * 17 + 7);
  });

  it("are large enough for a finger on a phone", () => {
    const layout = cellLayout(stepsOnly(20), 358, true);
    expect([layout.cell, layout.cellHeight]).toEqual([44, 44]);
  });

  it("leave out names of steps that would run into one another", () => {
    expect(cellLayout(stepsOnly(8), 600, false).nameEvery).toBe(1);
    expect(cellLayout(stepsOnly(200), 600, false).nameEvery).toBe(2);
  });

  it("are drawn only where they are in sight", () => {
    const layout = cellLayout(ranked(200, 8), 600, false);
    const [from, to] = visibleRange(layout.x, layout.cell, 5000, 5600, 4);
    expect(to - from).toBeLessThan(50);
    expect((layout.x[from + 4] as number) + layout.cell).toBeGreaterThanOrEqual(5000);
    expect(visibleRange(layout.x, layout.cell, 0, 600, 4)[0]).toBe(0);
  });
});
