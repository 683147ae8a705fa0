import { describe, expect, it } from "vitest";
import { entryPart, firstPart, matrixOf, neighbourPart, neighbourPlace, rangesText } from "./matrix";
import { runPart } from "./parts-for-tests";

const stages = ["generate", "reference", "update"];
/** Three stages × three steps, stage by stage as the verdict lists them. */
const nine = stages.flatMap((stage, row) => [0, 1, 2].map((step) => runPart(row * 3 + step, { stage, step })));

describe("the parts of a run as a table", () => {
  it("has a row a stage in the given order and a column a step in ascending order", () => {
    const matrix = matrixOf([
      runPart(0, { stage: "update", step: 10 }),
      runPart(1, { stage: "update", step: 2 }),
      runPart(2, { stage: "generate", step: 2 }),
    ]);
    expect(matrix.stages).toEqual(["update", "generate"]);
    expect(matrix.steps).toEqual([2, 10]);
    expect(matrix.cells.map((row) => row.map((part) => part?.n ?? null))).toEqual([
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
    expect(matrixOf([runPart(0, { step: 0 }), runPart(1, { step: null })]).steps).toEqual([null, 0]);
  });

  it("holds every part of 200 steps exactly once", () => {
    const many = Array.from({ length: 200 }, (_, step) => runPart(step, { step }));
    const held = matrixOf(many)
      .cells.flat()
      .map((part) => part?.n);
    expect(held).toEqual(many.map(({ n }) => n));
  });
});

describe("where a reader starts", () => {
  const parts = [
    runPart(0, { step: 0, verdict: "consistent" }),
    runPart(1, { step: 1, verdict: "not_comparable" }),
    runPart(2, { step: 2, verdict: "diverged" }),
    runPart(3, { step: 3, verdict: "diverged" }),
  ];

  it("is the part that the verdict names first", () => {
    const first = { stage: null, step: 2, module: "lm_head" };
    expect(firstPart({ parts, first })?.n).toBe(2);
    expect(entryPart({ parts, first })?.n).toBe(2);
  });

  it("is what could not be compared where nothing diverges, and the beginning where all agree", () => {
    expect(entryPart({ parts: parts.slice(0, 2), first: null })?.n).toBe(1);
    expect(entryPart({ parts: parts.slice(0, 1), first: null })?.n).toBe(0);
    expect(entryPart({ parts: [], first: null })).toBeNull();
  });
});

describe("arrow keys", () => {
  const matrix = matrixOf(nine);
  const go = (row: number, column: number, key: string, perBlock = 3) => neighbourPlace(matrix, { row, column }, key, perBlock);

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
    expect(neighbourPlace(holed, { row: 1, column: 0 }, "ArrowRight", 3)).toEqual({ row: 1, column: 2 });
    expect(neighbourPlace(holed, { row: 0, column: 1 }, "ArrowDown", 3)).toEqual({ row: 2, column: 1 });
  });

  it("lead from the last stage into the block of steps below", () => {
    expect(go(2, 0, "ArrowDown", 2)).toEqual({ row: 0, column: 2 });
    expect(go(0, 2, "ArrowUp", 2)).toEqual({ row: 2, column: 0 });
  });
});

describe("the parts before and after one", () => {
  it("are those that can be opened", () => {
    const parts = [runPart(0), runPart(1, { verdict: "right_only" }), runPart(2, { verdict: "not_comparable" })];
    expect(neighbourPart(parts, 0, 1)?.n).toBe(2);
    expect(neighbourPart(parts, 2, -1)?.n).toBe(0);
    expect(neighbourPart(parts, 2, 1)).toBeNull();
  });
});

it("writes ranks as ranges", () => {
  expect(rangesText([0])).toBe("0");
  expect(rangesText([3, 0, 1, 2, 7])).toBe("0–3, 7");
  expect(rangesText([])).toBe("");
});
