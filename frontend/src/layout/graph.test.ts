import { describe, expect, it } from "vitest";
import type { VisibleRows } from "../model/visible";
import { BOX, boxAcross, graphLayout, graphPanes, HEAD, minimap, placeAt, placesBetween } from "./graph";

/** Places of these depths, none of them a fold. */
function view(...depth: readonly number[]): VisibleRows {
  return { length: depth.length, rows: Int32Array.from(depth.keys()), depth: Uint8Array.from(depth), strips: new Map() };
}

// model > (embed, layer > (norm, attention > (q, k), mlp), head)
const model = graphLayout(view(0, 1, 1, 2, 2, 3, 3, 2, 1));

describe("nested boxes", () => {
  it("hold what is inside them and nothing else", () => {
    expect([...model.around]).toEqual([-1, 0, 0, 2, 2, 4, 4, 2, 0]);
    expect([...model.open]).toEqual([1, 0, 1, 0, 1, 0, 0, 0, 0]);
    for (let place = 1; place < model.length; place += 1) {
      const outer = model.around[place] as number;
      if (outer < 0) continue;
      const bottom = (box: number) => (model.top[box] as number) + (model.height[box] as number);
      expect(model.top[place]).toBeGreaterThanOrEqual((model.top[outer] as number) + HEAD);
      expect(bottom(place)).toBeLessThan(bottom(outer));
    }
  });

  it("never overlap where one is not inside the other", () => {
    for (let place = 1; place < model.length; place += 1) {
      for (let before = 0; before < place; before += 1) {
        if (model.around[place] !== model.around[before]) continue;
        expect(model.top[place]).toBeGreaterThan((model.top[before] as number) + (model.height[before] as number));
      }
    }
    expect(model.total).toBeGreaterThan((model.top[0] as number) + (model.height[0] as number));
  });

  it("get narrower inside one another, but never too narrow for a name", () => {
    const panes = graphPanes(900);
    expect(boxAcross(panes, 2).width).toBe(boxAcross(panes, 0).width - 40);
    expect(boxAcross(graphPanes(360), 40).width).toBeGreaterThan(100);
    expect(panes.right).toBe(panes.left + panes.pane + panes.gutter);
  });

  it("are laid out for 100,000 places within a frame or few", () => {
    const many = view(...Array.from({ length: 100_000 }, (_, place) => (place % 10 === 0 ? 1 : 2)));
    const start = performance.now();
    const layout = graphLayout(many);
    expect(performance.now() - start).toBeLessThan(200);
    expect(placesBetween(layout, layout.total / 2, layout.total / 2 + 700).length).toBeLessThan(60);
  });
});

describe("what is in sight", () => {
  it("is what begins there, after the boxes around it", () => {
    const q = model.top[5] as number;
    expect(placesBetween(model, q + 1, q + BOX)).toEqual([0, 2, 4, 5]);
    expect(placesBetween(model, 0, 10)).toEqual([0]);
    expect(placesBetween(model, 0, model.total)).toEqual([0, 1, 2, 3, 4, 5, 6, 7, 8]);
    expect(placesBetween(graphLayout(view()), 0, 100)).toEqual([]);
  });

  it("is found under the pointer by its name or its box", () => {
    for (let place = 0; place < model.length; place += 1) expect(placeAt(model, (model.top[place] as number) + 5)).toBe(place);
    expect(placeAt(model, (model.top[5] as number) + BOX + 2)).toBe(-1);
    expect(placeAt(model, -3)).toBe(-1);
  });
});

describe("the map of it all", () => {
  it("keeps the worst of what shares a pixel, and leaves free what is free", () => {
    const map = minimap(model, 20, (place) => (place === 5 ? 4 : 0));
    expect(Math.max(...map)).toBe(4);
    expect(map[Math.floor(((model.top[5] as number) / model.total) * 20)]).toBe(4);
    expect(minimap(graphLayout(view()), 10, () => 0)).toEqual(new Int8Array(10).fill(-1));
  });
});
