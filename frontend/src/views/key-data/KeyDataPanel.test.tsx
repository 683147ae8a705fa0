import { QueryClient, QueryClientProvider } from "@tanstack/react-query";
import { cleanup, fireEvent, render, screen, waitFor, within } from "@testing-library/react";
import { afterEach, beforeEach, describe, expect, it, vi } from "vitest";
import type { KeyData, KeyTable, TableValues } from "../../api/run-verdict";
import { keyData } from "../../model/run-verdict-for-tests";
import { KeyDataPanel } from "./KeyDataPanel";
import { openingTable, relativeOf, shapeText, shareText } from "./words";

function table(t: number, own: Partial<KeyTable> = {}): KeyTable {
  return {
    t,
    step: t,
    rank: 0,
    micro_step: 0,
    id: "0",
    right: null,
    state: "equal",
    evidence: "values",
    left_shape: [1, 3],
    right_shape: [1, 3],
    left_dtype: "float32",
    right_dtype: "float32",
    note: null,
    compared: 3,
    cropped: false,
    same: 100,
    first_mismatch: null,
    max_abs: 0,
    max_rel: 0,
    within_1e_3: 100,
    within_1e_2: 100,
    nan: [0, 0, 0],
    inf: [0, 0],
    masked: null,
    statistics: null,
    ...own,
  };
}

const DIFFERING: Partial<KeyTable> = {
  state: "differs",
  same: 33.333,
  first_mismatch: 1,
  max_abs: 0.05,
  max_rel: 0.0196,
  within_1e_3: 33.333,
};

function values(of: KeyTable, own: Partial<TableValues> = {}): TableValues {
  return {
    n: 3,
    key: "ref_log_prob",
    kind: "per_token",
    table: of,
    rows: [{ row: 0, left_length: 3, right_length: 3, valid: 2, same: 1, first_mismatch: 1, max_abs: 0.05, mean_abs: 0.02 }],
    rows_of: 1,
    row: 0,
    from: 0,
    of: 3,
    left: [-1, -2.5, "NaN"],
    right: [-1, -2.55, "NaN"],
    difference: [0, -0.05, "NaN"],
    ...own,
  };
}

function setup(tables: readonly KeyTable[], own: { data?: KeyData; values?: Partial<TableValues>; ready?: boolean } = {}) {
  const asked: string[] = [];
  const data = own.data ?? keyData(3, "ref_log_prob", { state: "differs" });
  vi.spyOn(window, "fetch").mockImplementation(async (request) => {
    const { pathname, search } = new URL((request as Request).url);
    asked.push(pathname.replace("/api/v1/comparisons/abc/key-data/", "") + search);
    const one = /tables\/(\d+)\/$/.exec(pathname);
    if (one === null) return Response.json({ format: 1, n: 3, key: data.key, kind: data.kind, state: data.state, tables });
    return Response.json(values(tables.find(({ t }) => t === Number(one[1])) as KeyTable, { kind: data.kind, ...own.values }));
  });
  render(
    <QueryClientProvider client={new QueryClient({ defaultOptions: { queries: { retry: false } } })}>
      <KeyDataPanel slug="abc" data={data} names={{ left: "run-a", right: "run-b" }} ready={own.ready ?? true} />
    </QueryClientProvider>,
  );
  return { asked };
}

const rowsOf = (grid: HTMLElement) =>
  within(grid)
    .getAllByRole("row")
    .map((row) => [...row.children].map((cell) => cell.textContent?.replaceAll("\u00a0", " ").trim() ?? "").join("|"));

describe("the tables of a key", () => {
  beforeEach(() => {
    window.history.replaceState(null, "", "/c/abc");
    window.dispatchEvent(new HashChangeEvent("hashchange"));
  });

  afterEach(cleanup);

  it("stand with the comparator's numbers, and the first that differs is open", async () => {
    setup([table(0), table(1, DIFFERING)]);
    const grid = await screen.findByRole("grid", { name: "Tables of ref_log_prob" });
    expect(rowsOf(grid)).toEqual([
      "state|step|rank|micro|shape|same %|first ≠|max abs|max rel|≤ 0.1 %|≤ 1 %",
      "equal|0|0|0|[1, 3]|100||0|0|100|100",
      "differs|1|0|0|[1, 3]|33.33|1|0.05000|1.96 %|33.33|100",
    ]);
    expect(within(grid).getByRole("row", { selected: true }).id).toBe("table-1");
    expect(grid.getAttribute("aria-activedescendant")).toBe("table-1");
  });

  it("are walked with the arrow keys, and the address keeps which one is open", async () => {
    setup([table(0), table(1, DIFFERING)]);
    const grid = await screen.findByRole("grid", { name: "Tables of ref_log_prob" });
    fireEvent.keyDown(grid, { key: "ArrowUp" });
    expect(within(grid).getByRole("row", { selected: true }).id).toBe("table-0");
    await waitFor(() => expect(window.location.hash).toBe("#v=1&k=3&e=0"));
  });

  it("leave out those that are equal where there are many, until asked", async () => {
    setup([...Array.from({ length: 20 }, (_, t) => table(t)), table(20, DIFFERING)]);
    const grid = await screen.findByRole("grid", { name: "Tables of ref_log_prob" });
    expect(within(grid).getAllByRole("row")).toHaveLength(2);
    fireEvent.click(screen.getByRole("button", { name: "All 21" }));
    expect(grid.getAttribute("aria-rowcount")).toBe("22");
  });

  it("show values side by side: what differs, where first, NaN in both as the same, padding named", async () => {
    const { asked } = setup([table(0), table(1, DIFFERING)]);
    const grid = await screen.findByRole("grid", { name: "Values side by side" });
    expect(rowsOf(grid)).toEqual([
      "token|run-a|run-b|difference|relative",
      "0|−1.000|−1.000|0|0",
      "1 first|−2.500|−2.550|−0.05000|−1.96 %",
      "2padding|NaN|NaN|0|0",
    ]);
    expect(asked).toEqual(["3/", "3/tables/1/?row=0&from=0"]);
    expect(screen.getByRole("img", { name: "1 of 3 places differs, the first at 1" })).toBeTruthy();
  });

  it("show tokens as their ids", async () => {
    setup([table(0, { ...DIFFERING, left_shape: [3], right_shape: [3] })], {
      data: keyData(1, "responses", { state: "differs", kind: "tokens" }),
      values: { left: [15, 151643, 7], right: [15, 151645, 7], difference: [0, 2, 0] },
    });
    const grid = await screen.findByRole("grid", { name: "Values side by side" });
    expect(rowsOf(grid)).toEqual(["token|run-a|run-b", "0|15|15", "1 first|151643|151645", "2padding|7|7"]);
  });

  it("say what the numbers alone would hide", async () => {
    setup([
      table(0, {
        ...DIFFERING,
        cropped: true,
        right_shape: [1, 4],
        nan: [2, 1, 1],
        inf: [0, 1],
        right: { rank: 1, micro_step: 0, id: "2" },
        masked: { compared: 2, same: 50, max_abs: 0.05, max_rel: 0.0196 },
      }),
    ]);
    await screen.findByRole("grid", { name: "Values side by side" });
    const notes = screen.getByText("shapes differ: the numbers are of what both have").closest("ul") as HTMLElement;
    expect([...notes.children].map(({ textContent }) => textContent?.replaceAll("\u00a0", " "))).toEqual([
      "shapes differ: the numbers are of what both have",
      "aligned by content with rank 1 · micro step 0 · entry 2 on the right",
      "NaN: 2 left, 1 right, 1 at the same place",
      "Inf: 0 left, 1 right",
      "Within the response's length (2 values): 50.00 % same, largest difference 0.05000",
    ]);
    expect(screen.getByRole("gridcell", { name: "[1, 3] | [1, 4]" })).toBeTruthy();
  });

  it("never show a difference of 0 for NaN on one side or another shape", async () => {
    setup([
      table(0, { state: "differs", same: 66.667, first_mismatch: 0, max_abs: 0, max_rel: 0, nan: [0, 1, 0] }),
      table(1, { state: "differs", cropped: true, right_shape: [1, 2] }),
    ]);
    await screen.findByRole("grid", { name: "Values side by side" });
    const cells = (t: number, column: string) => document.querySelector(`[data-table="${t}"] [data-column="${column}"]`);
    expect(["same", "max_abs", "max_rel"].map((column) => cells(0, column)?.textContent)).toEqual(["66.67", "NaN", "NaN"]);
    expect(["same", "max_abs", "max_rel"].map((column) => cells(1, column)?.textContent)).toEqual(["–", "–", "–"]);
    expect(cells(0, "max_abs")?.getAttribute("title")).toBe("NaN: 0 left, 1 right, 0 at the same place");
    expect(cells(1, "max_abs")?.getAttribute("title")).toContain("shapes differ");
  });

  it("of one side, empty or unreadable are named, and nothing is asked for them", async () => {
    const { asked } = setup([
      table(0, { state: "left_only", right_shape: null, evidence: "none", same: null, max_abs: null, max_rel: null, compared: null }),
    ]);
    expect(await screen.findByText("Only run-a has this table.")).toBeTruthy();
    expect(asked).toEqual(["3/"]);
  });

  it("show statistics where no values were written", async () => {
    setup([table(0, { ...DIFFERING, evidence: "statistics", statistics: { max: [-1, -1.5], norm: [5.9, 5.8] } })]);
    expect(await screen.findByText("Only statistics were written, so single values cannot be shown.")).toBeTruthy();
    expect(screen.getByRole("row", { name: "max −1.000 −1.500" })).toBeTruthy();
  });

  it("wait for the comparison to be done", () => {
    const { asked } = setup([], { ready: false });
    expect(screen.getByRole("status").textContent).toBe("The tables are read once the comparison is done.");
    expect(asked).toEqual([]);
  });

  it("lead through the rows of a table", async () => {
    const { asked } = setup([table(0, { ...DIFFERING, left_shape: [2, 3], right_shape: [2, 3] })], { values: { rows_of: 2 } });
    fireEvent.click(await screen.findByRole("button", { name: "Next row" }));
    await waitFor(() => expect(asked.at(-1)).toBe("3/tables/0/?row=1&from=0"));
    await waitFor(() => expect(window.location.hash).toBe("#v=1&k=3&e=0&r=1"));
  });
});

describe("numbers of a table", () => {
  it("never read 100 % while something differs, nor 0 % while something agrees", () => {
    expect([100, 99.9999, 33.333, 0.001, 0, null].map(shareText)).toEqual(["100", "99.99…", "33.33", "<\u00a00.01", "0", "–"]);
  });

  it("are relative to the larger of the two", () => {
    expect(relativeOf(1, 2)).toBe(0.5);
    expect(relativeOf(-2, -1)).toBe(0.5);
    expect(relativeOf(0, 0)).toBe(0);
    expect(relativeOf("NaN", 1)).toBeNull();
  });

  it("name one shape where both are the same", () => {
    expect(shapeText({ left_shape: [2, 3], right_shape: [2, 3] })).toBe("[2, 3]");
    expect(shapeText({ left_shape: [], right_shape: null })).toBe("[] | –");
  });

  it("open on the first table that differs and has values", () => {
    expect(openingTable({ tables: [table(0), table(1, { state: "left_only", evidence: "none" }), table(2, DIFFERING)] })?.t).toBe(2);
    expect(openingTable({ tables: [table(0)] })?.t).toBe(0);
    expect(openingTable({ tables: [] })).toBeNull();
  });
});
