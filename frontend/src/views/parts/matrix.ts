import type { RunPart, RunVerdict } from "../../api/types";

/** The parts of a run verdict as a table: a row a stage, a column a step. No React. */
export interface PartsMatrix {
  /** In the order that the verdict names them, which is the order of the pipeline; null where a part has no stage. */
  readonly stages: readonly (string | null)[];
  /** Ascending; null, where a part has no step, first. */
  readonly steps: readonly (number | null)[];
  /** `cells[row][column]`; null where neither side has such a part. */
  readonly cells: readonly (readonly (RunPart | null)[])[];
}

export interface Place {
  readonly row: number;
  readonly column: number;
}

export function matrixOf(parts: readonly RunPart[]): PartsMatrix {
  const stages = [...new Set(parts.map(({ stage }) => stage))];
  const steps = [...new Set(parts.map(({ step }) => step))].sort((a, b) => (a ?? -1) - (b ?? -1));
  const rows = new Map(stages.map((stage, row) => [stage, row]));
  const columns = new Map(steps.map((step, column) => [step, column]));
  const cells: (RunPart | null)[][] = stages.map(() => steps.map(() => null));
  for (const part of parts) {
    const row = cells[rows.get(part.stage) ?? -1];
    const column = columns.get(part.step) ?? -1;
    if (row !== undefined && column >= 0) row[column] = part;
  }
  return { stages, steps, cells };
}

export function placeOfPart(matrix: PartsMatrix, n: number): Place | null {
  for (const [row, cells] of matrix.cells.entries()) {
    const column = cells.findIndex((part) => part?.n === n);
    if (column >= 0) return { row, column };
  }
  return null;
}

/** The part that the verdict's `first` names. */
export function firstPart({ parts, first }: Pick<RunVerdict, "parts" | "first">): RunPart | null {
  if (first === null) return null;
  return parts.find(({ verdict, stage, step }) => verdict === "diverged" && stage === first.stage && step === first.step) ?? null;
}

/** Where a reader starts: at the first divergence, else at what could not be compared, else at the beginning. */
export function entryPart(verdict: Pick<RunVerdict, "parts" | "first">): RunPart | null {
  return firstPart(verdict) ?? verdict.parts.find((part) => part.verdict === "not_comparable") ?? verdict.parts[0] ?? null;
}

export function isOneSided({ verdict }: Pick<RunPart, "verdict">): boolean {
  return verdict === "left_only" || verdict === "right_only";
}

/** Whether a part asks for a look: all but those that agree. */
export function isNotable({ verdict }: Pick<RunPart, "verdict">): boolean {
  return verdict !== "identical" && verdict !== "consistent";
}

/** The nearest part before or after in the verdict's order that can be opened. */
export function neighbourPart(parts: readonly RunPart[], n: number, direction: 1 | -1): RunPart | null {
  for (let at = parts.findIndex((part) => part.n === n) + direction; at >= 0 && at < parts.length; at += direction) {
    const part = parts[at];
    if (part !== undefined && !isOneSided(part)) return part;
  }
  return null;
}

/**
 * Where an arrow key leads from a cell, past places that hold no part. Columns that do not fit beside one another stand in blocks of `perBlock`
 * below one another, so down from the last stage leads into the next block.
 */
export function neighbourPlace(matrix: PartsMatrix, from: Place, key: string, perBlock: number): Place | null {
  const { row, column } = from;
  const rows = matrix.stages.length;
  const columns = matrix.steps.length;
  const candidates: Place[] = [];
  const across = (first: number, step: 1 | -1) => {
    for (let next = first; next >= 0 && next < columns; next += step) candidates.push({ row, column: next });
  };
  const along = (step: 1 | -1) => {
    const lines = Math.ceil(columns / perBlock) * rows;
    for (let line = Math.floor(column / perBlock) * rows + row + step; line >= 0 && line < lines; line += step) {
      candidates.push({ row: line % rows, column: Math.floor(line / rows) * perBlock + (column % perBlock) });
    }
  };
  if (key === "ArrowRight") across(column + 1, 1);
  else if (key === "ArrowLeft") across(column - 1, -1);
  else if (key === "ArrowDown") along(1);
  else if (key === "ArrowUp") along(-1);
  else if (key === "Home") across(0, 1);
  else if (key === "End") across(columns - 1, -1);
  return candidates.find((place) => (matrix.cells[place.row]?.[place.column] ?? null) !== null) ?? null;
}

/** `[0, 1, 2, 5]` → `0–2, 5` */
export function rangesText(numbers: readonly number[]): string {
  const ranges: string[] = [];
  const sorted = [...numbers].sort((a, b) => a - b);
  for (let at = 0; at < sorted.length; at += 1) {
    const start = sorted[at];
    while (sorted[at + 1] === (sorted[at] ?? 0) + 1) at += 1;
    const end = sorted[at];
    ranges.push(start === end ? `${start}` : `${start}–${end}`);
  }
  return ranges.join(", ");
}
