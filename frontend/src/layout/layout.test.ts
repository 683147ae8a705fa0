import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { layer, type RowLiteral, treeBytes } from "../model/encode-for-tests";
import { decodeTree } from "../model/tree";
import { ExecutionOrder } from "../model/walk";
import { axisShare, rampLevel } from "./axis";
import { BAR_WIDTH, barWidth, stripCells, treeColumns } from "./grid";
import { dotAt, labelledTicks, largestDifference, layerTicks, noiseBand, RailScale, railDots, SHAPE } from "./timeline";

describe("the log axis", () => {
  it("runs from 0.07 % to 50 %", () => {
    expect(axisShare(0.0007)).toBeCloseTo(0, 2);
    expect(axisShare(0.5)).toBeCloseTo(1, 2);
    // By hand: (log10 0.01 + 3.15) / 2.85 = 1.15 / 2.85
    expect(axisShare(0.01)).toBeCloseTo(0.4035, 4);
  });

  it("never goes down and stays within the column, whatever it is given", () => {
    fc.assert(
      fc.property(fc.double({ noNaN: true }), fc.double({ noNaN: true }), (a, b) => {
        const [small, large] = Math.abs(a) <= Math.abs(b) ? [a, b] : [b, a];
        expect(axisShare(small)).toBeLessThanOrEqual(axisShare(large));
        expect(axisShare(large)).toBeGreaterThanOrEqual(0);
        expect(axisShare(large)).toBeLessThanOrEqual(1);
      }),
    );
    expect(axisShare(Number.NaN)).toBe(0);
    expect(axisShare(Number.POSITIVE_INFINITY)).toBe(1);
  });

  it.each([
    [0.003, 0.008, 0],
    [0.008, 0.008, 0],
    [0.009, 0.008, 1],
    [0.0214, 0.017, 2],
    [0.0602, 0.017, 3],
    [0.2, 0.017, 4],
    [0.3, 0.017, 5],
    [Number.POSITIVE_INFINITY, 0.017, 5],
    [Number.NaN, 0.017, 0],
  ])("a difference of %d over a floor of %d has colour %d", (difference, floor, level) => {
    expect(rampLevel(difference, floor)).toBe(level);
  });
});

describe("the columns of the tree", () => {
  it("are those of the picture at its width", () => {
    expect(treeColumns(806)).toEqual({ gutter: 28, train: 258, inference: 146, bar: 150, value: 68, growth: 54, inside: 90, pad: 12 });
    expect(barWidth(treeColumns(806))).toBe(BAR_WIDTH);
  });

  it("fill any width from a phone to a wide screen exactly", () => {
    fc.assert(
      fc.property(fc.integer({ min: 320, max: 3000 }), (width) => {
        const columns = treeColumns(width);
        expect(Object.values(columns).reduce((sum, column) => sum + column, 0)).toBe(width);
        expect(columns.train).toBeGreaterThanOrEqual(112);
      }),
    );
  });

  it("fit a strip of any number of layers into the bar", () => {
    fc.assert(
      fc.property(fc.integer({ min: 2, max: 400 }), (count) => {
        const { pitch, size } = stripCells(count, BAR_WIDTH);
        expect((count - 1) * pitch + Math.min(size, pitch)).toBeLessThanOrEqual(BAR_WIDTH + 1e-6);
      }),
    );
    expect(stripCells(24, BAR_WIDTH).size).toBeLessThanOrEqual(10);
  });
});

/** The floor of every row of a layer, as an engine's grows with depth. */
function withFloor(row: RowLiteral, floor: number): RowLiteral {
  return { ...row, floor, children: (row.children ?? []).map((child) => withFloor(child, floor)) };
}

describe("the timeline", () => {
  const layers = Array.from({ length: 24 }, (_, index) =>
    withFloor(layer(index, index === 11 ? { role: 1, grade: 3, difference: 0.06, origin: 0 } : {}), 2 ** -8 * Math.sqrt(2 * index + 1)),
  );
  const tree = decodeTree(treeBytes([{ name: "model", children: layers }]));
  const execution = new ExecutionOrder(tree);
  const scale = new RailScale({ left: 64, right: 1274, top: 22, bottom: 77 }, tree.compared, largestDifference(tree));

  it("puts the first pair at the left edge, the last at the right, and finds an order back from its place", () => {
    expect(scale.x(0)).toBe(64);
    expect(scale.x(tree.compared - 1)).toBe(1274);
    fc.assert(
      fc.property(fc.integer({ min: 0, max: tree.compared - 1 }), (order) => {
        expect(scale.order(scale.x(order))).toBe(order);
      }),
    );
  });

  it("clips what is below the axis to its foot and what is infinite to its top", () => {
    expect(scale.y(0)).toBe(77);
    expect(scale.y(1e-9)).toBe(77);
    expect(scale.y(Number.POSITIVE_INFINITY)).toBe(22);
    expect(scale.ticks()).toEqual([0.001, 0.01, 0.1]);
  });

  it("finds the origin under the pointer, before a dot that lies nearer", () => {
    const dots = railDots(tree, execution, scale);
    const index = [...dots.shape].indexOf(SHAPE.origin);
    const hit = dotAt(dots, (dots.x[index] as number) + 3, dots.y[index] as number, 8);
    expect(dots.shape[hit]).toBe(SHAPE.origin);
    expect(dotAt(dots, 64, 22, 8)).toBe(-1);
  });

  it("thins 100k marks to what the pixels can hold, and loses no origin", () => {
    const many = decodeTree(
      treeBytes(
        Array.from({ length: 40 }, (_, call) => ({
          name: `call ${call}`,
          kind: 0,
          children: Array.from({ length: 300 }, (_, index) => {
            const base = (call * 300 + index) * 6;
            const one = layer(
              index,
              { order: base },
              { role: index === 7 ? 1 : 2, grade: 3, difference: 0.05, order: base + 1, origin: index === 7 ? call : -1 },
            );
            return one;
          }),
        })),
      ),
    );
    const wide = new RailScale(scale.area, many.compared, largestDifference(many));
    const dots = railDots(many, new ExecutionOrder(many), wide);
    expect(dots.count).toBeLessThan(12_000);
    expect([...dots.shape].filter((shape) => shape === SHAPE.origin)).toHaveLength(40);
  });

  it("names every fourth layer and the last", () => {
    const ticks = layerTicks(tree);
    expect(ticks).toHaveLength(24);
    expect(labelledTicks(ticks, scale, 24).map((tick) => tick.layer)).toEqual([0, 4, 8, 12, 16, 20, 23]);
  });

  it("draws the noise band where the rows' own floors are, growing with depth", () => {
    const band = noiseBand(tree, execution, 40);
    expect(band.length).toBeGreaterThan(10);
    for (let place = 1; place < band.length; place += 1) {
      expect((band[place] as [number, number])[1]).toBeGreaterThanOrEqual((band[place - 1] as [number, number])[1]);
    }
    // By hand: layer 12's floor is 2^-8 · √25 = 0.0195.
    const middle = band.find(([order]) => order >= 12 * 6 + 3) as [number, number];
    expect(middle[1]).toBeCloseTo(0.0195, 3);
  });
});
