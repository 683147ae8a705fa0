import fc from "fast-check";
import { describe, expect, it } from "vitest";
import {
  DEFAULT_VIEW,
  decodeSet,
  decodeView,
  encodeSet,
  encodeView,
  MAX_SET_LENGTH,
  RANK_COLUMNS,
  VIEW_TABS,
  type ViewState,
} from "./url-state";

const row = fc.integer({ min: 0, max: 400_000 });
const rows = fc.uniqueArray(row, { maxLength: 200 }).map((numbers) => numbers.sort((a, b) => a - b));
const state: fc.Arbitrary<ViewState> = fc.record({
  part: fc.option(row),
  table: fc.option(row),
  entry: fc.option(row),
  row: fc.option(row),
  ranks: fc.option(fc.constantFrom(...RANK_COLUMNS)),
  node: fc.option(row),
  tab: fc.option(fc.constantFrom(...VIEW_TABS)),
  query: fc.string({ unit: "grapheme", maxLength: 60 }),
  opened: fc.option(rows),
  anchor: fc.option(row),
  brush: fc.option(fc.tuple(row, row).map(([a, b]): [number, number] => [Math.min(a, b), Math.max(a, b)])),
  ignored: rows,
});

describe("the view state in the address", () => {
  it("comes back as it went in", () => {
    fc.assert(
      fc.property(state, (view) => {
        expect(decodeView(encodeView(view))).toEqual(view);
      }),
    );
  });

  it("comes back through a real URL, which may escape characters of its own", () => {
    fc.assert(
      fc.property(state, (view) => {
        const url = new URL(`http://127.0.0.1:8000/c/abc#${encodeView(view)}`);
        expect(decodeView(url.hash)).toEqual(view);
      }),
    );
  });

  it("is empty for the default, so a plain link stays plain", () => {
    expect(encodeView(DEFAULT_VIEW)).toBe("");
    expect(decodeView("")).toEqual(DEFAULT_VIEW);
    expect(decodeView("#")).toEqual(DEFAULT_VIEW);
  });

  it("keeps a typical link short and readable", () => {
    const view: ViewState = { ...DEFAULT_VIEW, node: 151, query: "grade>noise layer:3..7", opened: [0, 1, 2, 3, 140, 147] };
    expect(encodeView(view)).toBe("v=1&n=47&q=grade%3Enoise+layer:3..7&o=0~3.3s.6");
  });

  it("tells rows that are all shut from the page's own choice", () => {
    expect(decodeView(encodeView({ ...DEFAULT_VIEW, opened: [] })).opened).toEqual([]);
    expect(decodeView("v=1&n=1").opened).toBeNull();
  });

  it("reads any text without throwing", () => {
    fc.assert(
      fc.property(fc.string({ maxLength: 200 }), (text) => {
        expect(Object.keys(decodeView(text)).sort()).toEqual(Object.keys(DEFAULT_VIEW).sort());
      }),
    );
  });

  it("takes what it knows of a newer version and leaves out what is broken", () => {
    expect(decodeView("v=9&n=a&z=new&t=hologram&a=-4&b=9-3&o=!&i=%E0%A4%A")).toEqual({ ...DEFAULT_VIEW, node: 10 });
  });

  it("drops a set of rows that would make the link too long, and nothing else", () => {
    const scattered = Array.from({ length: 9000 }, (_, index) => index * 2);
    const view: ViewState = { ...DEFAULT_VIEW, node: 3, opened: scattered };
    expect(encodeSet(scattered).length).toBeGreaterThan(MAX_SET_LENGTH);
    expect(decodeView(encodeView(view))).toEqual({ ...view, opened: null });
  });

  it("does not let a hostile link allocate a set of a billion rows", () => {
    expect(decodeSet("0~zzzzzz")).toBeNull();
    expect(decodeSet("0~zzzzz.0~zzzzz")).toBeNull();
  });
});

describe("a set of rows as text", () => {
  it("comes back for every ascending set", () => {
    fc.assert(
      fc.property(rows, (numbers) => {
        expect(decodeSet(encodeSet(numbers))).toEqual(numbers);
      }),
    );
  });

  it("writes runs once", () => {
    expect(encodeSet([3, 4, 5, 9])).toBe("3~2.3");
    expect(encodeSet(Array.from({ length: 40_000 }, (_, index) => index))).toBe("0~uv3");
  });
});
