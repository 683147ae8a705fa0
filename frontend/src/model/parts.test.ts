import { describe, expect, it } from "vitest";
import {
  cellState,
  entryPart,
  firstOrigin,
  firstPart,
  hasRanks,
  matrixOf,
  neighbourPart,
  neighbourPlace,
  placeOfCell,
  rangesText,
  worstOfSteps,
} from "./parts";
import { runPart } from "./parts-for-tests";

const stages = ["generate", "reference", "update"];
/** Three stages × three steps, stage by stage as the verdict lists them. */
const nine = stages.flatMap((stage, row) => [0, 1, 2].map((step) => runPart(row * 3 + step, { stage, step })));

const byRank = (...verdicts: readonly ("identical" | "diverged")[]) => verdicts.map((verdict, rank) => ({ rank, verdict }));

describe("the parts of a run as a table", () => {
  it("has a row a stage in the given order and a column a step in ascending order", () => {
    const matrix = matrixOf([
      runPart(0, { stage: "update", step: 10 }),
      runPart(1, { stage: "update", step: 2 }),
      runPart(2, { stage: "generate", step: 2 }),
    ]);
    expect(matrix.stages).toEqual(["update", "generate"]);
    expect(matrix.columns.map(({ step }) => step)).toEqual([2, 10]);
    expect(matrix.cells.map((row) => row.map((cell) => cell?.part.n ?? null))).toEqual([
      [1, 0],
      [2, null],
    ]);
  });

  it("has one row where no part has a stage", () => {
    const matrix = matrixOf([runPart(0, { step: 0 }), runPart(1, { step: 1 })]);
    expect(matrix.stages).toEqual([null]);
    expect(matrix.cells[0]?.length).toBe(2);
  });

  it("puts parts without a step before step 0", () => {
    expect(matrixOf([runPart(0, { step: 0 }), runPart(1, { step: null })]).columns.map(({ step }) => step)).toEqual([null, 0]);
  });

  it("holds every part of 200 steps exactly once", () => {
    const many = Array.from({ length: 200 }, (_, step) => runPart(step, { step }));
    const held = matrixOf(many)
      .cells.flat()
      .map((cell) => cell?.part.n);
    expect(held).toEqual(many.map(({ n }) => n));
  });
});

describe("ranks of their own", () => {
  const parts = [
    runPart(0, { stage: "reference", step: 0, verdict: "diverged", by_rank: byRank("identical", "diverged") }),
    runPart(1, { stage: "update", step: 0, verdict: "identical", by_rank: byRank("identical", "identical", "identical") }),
    runPart(2, { stage: "critic", step: 0, verdict: "left_only" }),
  ];

  it("are columns of a step, as many as any of its parts has", () => {
    expect(hasRanks(parts)).toBe(true);
    const matrix = matrixOf(parts, true);
    expect(matrix.columns).toEqual([0, 1, 2].map((rank) => ({ step: 0, rank })));
    const states = matrix.cells.map((row) => row.map((cell) => (cell === null ? null : cellState(cell))));
    expect(states).toEqual([
      ["identical", "diverged", null],
      ["identical", "identical", "identical"],
      ["left_only", "left_only", "left_only"],
    ]);
    expect(placeOfCell(matrix, 0, 1)).toEqual({ row: 0, column: 1 });
    expect(placeOfCell(matrix, 0, 9)).toEqual({ row: 0, column: 0 });
  });

  it("stand together in one cell with the part's own verdict where that is asked for", () => {
    const matrix = matrixOf(parts);
    expect(matrix.columns).toEqual([{ step: 0, rank: null }]);
    expect(matrix.cells.map((row) => row.map((cell) => (cell === null ? null : cellState(cell))))).toEqual([
      ["diverged"],
      ["identical"],
      ["left_only"],
    ]);
  });

  it("are not made up where the verdict does not say them", () => {
    const silent = [runPart(0, { ranks: [0, 1, 2, 3], verdict: "diverged" })];
    expect(hasRanks(silent)).toBe(false);
    expect(matrixOf(silent, true).columns).toEqual([{ step: 0, rank: null }]);
  });
});

describe("parts that are still being compared", () => {
  it("show how far their work is, and a failed one never a verdict", () => {
    const state = (own: Parameters<typeof runPart>[1]) => cellState({ part: runPart(0, own), rank: null });
    expect(state({ state: "queued", verdict: null })).toBe("queued");
    expect(state({ state: "failed", verdict: null })).toBe("failed");
    expect(state({ state: "done", verdict: "diverged" })).toBe("diverged");
    expect(state({ verdict: "consistent" })).toBe("consistent");
  });

  it("count as worse than what agrees, in the strip over the steps", () => {
    const parts = [
      runPart(0, { stage: "a", step: 1, verdict: "identical" }),
      runPart(1, { stage: "b", step: 1, verdict: null, state: "running" }),
      runPart(2, { stage: "a", step: 0, verdict: "identical" }),
      runPart(3, { stage: "b", step: 0, verdict: "diverged" }),
    ];
    expect(worstOfSteps(parts)).toEqual([
      { step: 0, state: "diverged" },
      { step: 1, state: "running" },
    ]);
  });
});

describe("where a reader starts", () => {
  const parts = [
    runPart(0, { step: 0, verdict: "consistent" }),
    runPart(1, { step: 1, verdict: "not_comparable" }),
    runPart(2, { step: 2, verdict: "diverged" }),
    runPart(3, { step: 3, verdict: "diverged" }),
  ];
  const nowhere = { key_data: null, stage: null, rank: null, module: null };

  it("is the part that the verdict names first", () => {
    const first = { ...nowhere, step: 2, module: "lm_head" };
    expect(firstPart({ parts, first })?.n).toBe(2);
    expect(entryPart({ parts, first })?.n).toBe(2);
  });

  it("is a part within noise where a table differs and the stage that made it shows no more than a first difference", () => {
    const difference = {
      module: "lm_head",
      left: [],
      right: [],
      slot: "output.0",
      direction: "forward",
      order: 3,
      grade: "rounding",
    } as const;
    const quiet = [runPart(0, { step: 0 }), runPart(1, { step: 1, verdict: "consistent", first_difference: difference })];
    expect(firstPart({ parts: quiet, first: { ...nowhere, key_data: "loss", step: 1 } })?.n).toBe(1);
    expect(firstPart({ parts: quiet, first: { ...nowhere, key_data: "loss", step: 0 } })).toBeNull();
  });

  it("is the part that the document numbers, also where another of its stage and step diverged too", () => {
    const first = { ...nowhere, step: 2, module: "lm_head" };
    expect(firstPart({ parts, first, first_part: 3 })?.n).toBe(3);
    expect(firstPart({ parts, first, first_part: null })).toBeNull();
    expect(firstOrigin({ parts, first, first_part: 3, first_origin: null })).toBeNull();
  });

  it("is what could not be compared where nothing diverges, and the beginning where all agree", () => {
    expect(entryPart({ parts: parts.slice(0, 2), first: null })?.n).toBe(1);
    expect(entryPart({ parts: parts.slice(0, 1), first: null })?.n).toBe(0);
    expect(entryPart({ parts: [], first: null })).toBeNull();
  });
});

describe("arrow keys", () => {
  const matrix = matrixOf(nine);
  const go = (row: number, column: number, key: string) => neighbourPlace(matrix, { row, column }, key);

  it("move by a step and by a stage and stop at the edge", () => {
    expect(go(1, 1, "ArrowRight")).toEqual({ row: 1, column: 2 });
    expect(go(1, 1, "ArrowUp")).toEqual({ row: 0, column: 1 });
    expect(go(2, 0, "ArrowDown")).toBeNull();
    expect(go(0, 0, "ArrowLeft")).toBeNull();
    expect(go(1, 1, "Home")).toEqual({ row: 1, column: 0 });
    expect(go(1, 1, "End")).toEqual({ row: 1, column: 2 });
  });

  it("pass places that hold no part", () => {
    const holed = matrixOf(nine.filter(({ n }) => n !== 4));
    expect(neighbourPlace(holed, { row: 1, column: 0 }, "ArrowRight")).toEqual({ row: 1, column: 2 });
    expect(neighbourPlace(holed, { row: 0, column: 1 }, "ArrowDown")).toEqual({ row: 2, column: 1 });
  });
});

describe("the parts before and after one", () => {
  it("are those that can be opened", () => {
    const parts = [
      runPart(0),
      runPart(1, { verdict: "right_only" }),
      runPart(2, { verdict: null, state: "failed" }),
      runPart(3, { verdict: "not_comparable" }),
    ];
    expect(neighbourPart(parts, 0, 1)?.n).toBe(3);
    expect(neighbourPart(parts, 3, -1)?.n).toBe(0);
    expect(neighbourPart(parts, 3, 1)).toBeNull();
  });
});

it("writes ranks as ranges", () => {
  expect(rangesText([0])).toBe("0");
  expect(rangesText([3, 0, 1, 2, 7])).toBe("0–3, 7");
  expect(rangesText([])).toBe("");
});
