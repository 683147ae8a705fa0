import type { LoopDocument, PartVerdictWord, RunFirst, RunPart, RunVerdict } from "../api/run-verdict";
import type { Comparison, Origin, PartState } from "../api/types";

/** The parts of a run verdict as a table: a row a stage, a column a step, or a rank of a step. */
export interface Column {
  readonly step: number | null;
  /** null: all ranks of the step together. */
  readonly rank: number | null;
}

export interface Cell {
  readonly part: RunPart;
  readonly rank: number | null;
}

export interface PartsMatrix {
  /** In the order that the verdict names them, which is the order of the pipeline; null where a part has no stage. */
  readonly stages: readonly (string | null)[];
  /** Steps ascending, a missing one first; ranks ascending within them. */
  readonly columns: readonly Column[];
  /** `cells[row][column]`; null where neither side has such a part. */
  readonly cells: readonly (readonly (Cell | null)[])[];
}

export interface Place {
  readonly row: number;
  readonly column: number;
}

/** What a cell shows: the verdict, or how far its work is where it has none. */
export type CellState = PartVerdictWord | "queued" | "running" | "failed" | "cancelled";

export function matrixOf(parts: readonly RunPart[], ranked = false): PartsMatrix {
  const stages = [...new Set(parts.map(({ stage }) => stage))];
  const steps = new Map<number | null, Set<number>>();
  for (const { step, by_rank: byRank } of parts) {
    const ranks = steps.get(step) ?? new Set();
    for (const { rank } of byRank ?? []) ranks.add(rank);
    steps.set(step, ranks);
  }
  const columns: Column[] = [];
  for (const [step, ranks] of [...steps].sort(([a], [b]) => (a ?? -1) - (b ?? -1))) {
    if (!ranked || ranks.size === 0) columns.push({ step, rank: null });
    else for (const rank of [...ranks].sort((a, b) => a - b)) columns.push({ step, rank });
  }
  const rows = new Map(stages.map((stage, row) => [stage, row]));
  const at = new Map<number | null, number[]>();
  columns.forEach(({ step }, column) => {
    const known = at.get(step);
    if (known === undefined) at.set(step, [column]);
    else known.push(column);
  });
  const cells: (Cell | null)[][] = stages.map(() => columns.map(() => null));
  for (const part of parts) {
    const row = cells[rows.get(part.stage) ?? -1];
    if (row === undefined) continue;
    for (const column of at.get(part.step) ?? []) {
      const rank = columns[column]?.rank ?? null;
      if (rank === null || holdsRank(part, rank)) row[column] = { part, rank };
    }
  }
  return { stages, columns, cells };
}

/** A part on one side only, or one without a verdict yet, stands in every rank of its step. */
function holdsRank({ by_rank: byRank }: RunPart, rank: number): boolean {
  return byRank === undefined || byRank.length === 0 || byRank.some((one) => one.rank === rank);
}

/** Whether any part says of each rank how it is, and one has several. */
export function hasRanks(parts: readonly RunPart[]): boolean {
  return parts.some(({ by_rank: byRank }) => (byRank?.length ?? 0) > 1);
}

export function cellState({ part, rank }: Cell): CellState {
  if (part.state !== undefined && part.state !== "done") return part.state;
  const own = rank === null ? undefined : part.by_rank?.find((one) => one.rank === rank)?.verdict;
  return own ?? part.verdict ?? "queued";
}

export function placeOfCell(matrix: PartsMatrix, n: number, rank: number | null): Place | null {
  let other: Place | null = null;
  for (const [row, cells] of matrix.cells.entries()) {
    for (const [column, cell] of cells.entries()) {
      if (cell?.part.n !== n) continue;
      if (cell.rank === rank || cell.rank === null) return { row, column };
      other ??= { row, column };
    }
  }
  return other;
}

/** The parts of a comparison that has no verdict yet, as far as they are. */
export function partsSoFar(states: readonly PartState[]): readonly RunPart[] {
  return states.map(({ n, stage, step, state, verdict, error }) => ({
    n,
    left: verdict === "right_only" ? null : { stage, step },
    right: verdict === "left_only" ? null : { stage, step },
    stage,
    step,
    ranks: [],
    verdict,
    first_difference: null,
    first_divergence: null,
    state,
    error,
  }));
}

/** What is known while parts are still being compared. All numbers are of parts that both sides hold. */
export interface SoFar {
  readonly all: number;
  /** Compared, with a verdict. */
  readonly done: number;
  readonly running: number;
  readonly waiting: number;
  readonly failed: number;
  /** The earliest part that diverges of those that are done; a part before it may still. */
  readonly earliest: RunPart | null;
  /** Of the parts before the earliest (of all, where there is none): still to be compared, failed, and those that agree. */
  readonly before: { readonly open: number; readonly failed: number; readonly agreeing: number; readonly all: number };
}

export function soFar(parts: readonly RunPart[]): SoFar {
  const shared = parts.filter((part) => !isOneSided(part));
  const count = (among: readonly RunPart[], ...states: readonly CellState[]) =>
    among.filter((part) => states.includes(cellState({ part, rank: null }))).length;
  const at = shared.findIndex((part) => cellState({ part, rank: null }) === "diverged");
  const before = at < 0 ? shared : shared.slice(0, at);
  return {
    all: shared.length,
    done: shared.filter(({ state }) => state === "done").length,
    running: count(shared, "running"),
    waiting: count(shared, "queued"),
    failed: count(shared, "failed"),
    earliest: shared[at] ?? null,
    before: {
      open: count(before, "queued", "running"),
      failed: count(before, "failed"),
      agreeing: count(before, "identical", "consistent"),
      all: before.length,
    },
  };
}

/** A page that has no verdict yet as far as it is known: key data and settings, which no part changes, and the parts as they are. */
export function verdictSoFar(
  parts: readonly RunPart[],
  loop: LoopDocument | null,
): Pick<RunVerdict, "first" | "configurations" | "key_data" | "preconditions" | "checks" | "drift" | "findings" | "parts"> {
  const { key = null, step = null, rank = null } = loop?.first ?? {};
  return {
    first: key === null ? null : { key_data: key, stage: null, step, rank, module: null },
    configurations: loop?.configurations ?? [],
    key_data: loop?.key_data ?? [],
    preconditions: loop?.preconditions ?? [],
    checks: loop?.checks ?? [],
    drift: loop?.drift ?? [],
    findings: loop?.findings ?? [],
    parts,
  };
}

/** Whether a part's documents can be asked for: those of a part that is done, whatever the others do. null: the only part. */
export function isWritten({ state, parts }: Pick<Comparison, "state" | "parts">, n: number | null): boolean {
  return state === "done" || (n !== null && parts.some((part) => part.n === n && part.state === "done"));
}

/** Whether there is something behind a part to open. */
export function canOpen(part: RunPart): boolean {
  return !isOneSided(part) && part.verdict !== null && (part.state === undefined || part.state === "done");
}

/** Whether a press on its cell leads somewhere: to the workbench, or to what failed and why. */
export function hasPanel(part: RunPart): boolean {
  return canOpen(part) || part.state === "failed";
}

export function isOneSided({ verdict }: Pick<RunPart, "verdict">): boolean {
  return verdict === "left_only" || verdict === "right_only";
}

/** Where an arrow key leads from a cell, past places that hold no part. */
export function neighbourPlace(matrix: PartsMatrix, from: Place, key: string): Place | null {
  const { row, column } = from;
  const rows = matrix.stages.length;
  const columns = matrix.columns.length;
  const candidates: Place[] = [];
  const across = (first: number, step: number) => {
    for (let next = first; next >= 0 && next < columns; next += step) candidates.push({ row, column: next });
  };
  const along = (step: number) => {
    for (let next = row + step; next >= 0 && next < rows; next += step) candidates.push({ row: next, column });
  };
  if (key === "ArrowRight") across(column + 1, 1);
  else if (key === "ArrowLeft") across(column - 1, -1);
  else if (key === "ArrowDown") along(1);
  else if (key === "ArrowUp") along(-1);
  else if (key === "Home") across(0, 1);
  else if (key === "End") across(columns - 1, -1);
  return candidates.find((place) => (matrix.cells[place.row]?.[place.column] ?? null) !== null) ?? null;
}

/** The worst that each step holds, over all stages: what the strip above a wide matrix shows. */
export function worstOfSteps(parts: readonly RunPart[]): readonly { step: number | null; state: CellState }[] {
  const steps = new Map<number | null, CellState>();
  for (const part of parts) {
    const state = cellState({ part, rank: null });
    const known = steps.get(part.step);
    if (known === undefined || SEVERITY.indexOf(state) < SEVERITY.indexOf(known)) steps.set(part.step, state);
  }
  return [...steps].sort(([a], [b]) => (a ?? -1) - (b ?? -1)).map(([step, state]) => ({ step, state }));
}

const SEVERITY: readonly CellState[] = [
  "failed",
  "diverged",
  "not_comparable",
  "running",
  "queued",
  "cancelled",
  "left_only",
  "right_only",
  "consistent",
  "identical",
];

type Leading = Pick<RunVerdict, "parts" | "first" | "first_part" | "first_origin">;

/** The part that the chain from table to module leads into. */
export function firstPart({ parts, first, first_part: named }: Leading): RunPart | null {
  if (first === null) return null;
  return named === undefined ? partOfPlace(parts, first) : (parts.find(({ n }) => n === named) ?? null);
}

/** The part that is marked as the first divergence, and that its button opens: one that failed has nothing to show, and may not differ. */
export function firstCompared(verdict: Leading): RunPart | null {
  const part = firstPart(verdict);
  return part !== null && canOpen(part) ? part : null;
}

/** Where that part diverged, on the rank that the chain names. */
export function firstOrigin(verdict: Leading): Origin | null {
  const { first_origin: origin } = verdict;
  return origin === undefined ? (firstPart(verdict)?.first_divergence ?? null) : origin;
}

/** In a document of an older version, which names a stage and a step alone. */
function partOfPlace(parts: readonly RunPart[], first: RunFirst): RunPart | null {
  const named = parts.filter((part) => !isOneSided(part) && part.stage === first.stage && part.step === first.step);
  return (
    named.find(({ verdict }) => verdict === "diverged") ?? named.find(({ first_difference: difference }) => difference !== null) ?? null
  );
}

/** Where a reader starts: at the first divergence, else at what could not be compared, else at the beginning. */
export function entryPart(verdict: Leading): RunPart | null {
  return firstPart(verdict) ?? verdict.parts.find((part) => part.verdict === "not_comparable") ?? verdict.parts[0] ?? null;
}

/** Whether a part asks for a look: all but those that agree. */
export function isNotable({ verdict }: Pick<RunPart, "verdict">): boolean {
  return verdict !== "identical" && verdict !== "consistent";
}

/** The nearest part before or after in the verdict's order that can be opened. */
export function neighbourPart(parts: readonly RunPart[], n: number, direction: 1 | -1): RunPart | null {
  for (let at = parts.findIndex((part) => part.n === n) + direction; at >= 0 && at < parts.length; at += direction) {
    const part = parts[at];
    if (part !== undefined && canOpen(part)) return part;
  }
  return null;
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
