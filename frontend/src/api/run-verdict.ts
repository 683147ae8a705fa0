import type { ApiProblem, Bilingual, FirstDifference, Num, Origin, Params, SideSummary, VerdictWord } from "./types";

/** `probe-web/run-verdict/1` and the key data behind it, as `docs/formats.md` describes them. */

export type PartVerdictWord = VerdictWord | "left_only" | "right_only";

export interface PartKey {
  readonly stage: string | null;
  readonly step: number | null;
}

export interface RunPart {
  readonly n: number;
  readonly left: PartKey | null;
  readonly right: PartKey | null;
  readonly stage: string | null;
  readonly step: number | null;
  readonly ranks: readonly number[];
  /** null while the part is still being compared, and where that failed. */
  readonly verdict: PartVerdictWord | null;
  readonly first_difference: FirstDifference | null;
  readonly first_divergence: Origin | null;
  /** Absent where all parts were compared in one piece: then all of them are done. */
  readonly state?: "queued" | "running" | "done" | "failed" | "cancelled";
  readonly error?: ApiProblem | null;
  /** The verdict of each rank alone, where ranks were compared one with one. */
  readonly by_rank?: readonly { readonly rank: number; readonly verdict: VerdictWord }[];
  /** Why its two dumps stand against each other: the same step, request or tokens. Absent in verdicts of older versions. */
  readonly reason?: { readonly code: string; readonly text: Bilingual } | null;
}

/** Where a key-data table lies. `id` is the entry of a list, or the name in an object. */
export interface TablePlace {
  readonly step: number | null;
  readonly rank: number | null;
  readonly micro_step: number | null;
  readonly id: string | null;
}

/** `padding`: only positions beyond the responses' ends differ. Of a key besides: `not_compared`; of a table: `not_read`, `not_comparable`. */
export type KeyDataState =
  | "equal"
  | "padding"
  | "differs"
  | "consequence"
  | "left_only"
  | "right_only"
  | "not_compared"
  | "not_read"
  | "not_comparable";
export type KeyDataKind = "tokens" | "per_token" | "scalar" | "other";

/** One key of the pipeline: prompts, responses, … loss. */
export interface KeyData {
  /** Its number in addresses. */
  readonly n: number;
  readonly key: string;
  readonly order: number;
  readonly kind: KeyDataKind;
  /** The stage that makes it, null where it is not dumped. */
  readonly stage: string | null;
  readonly state: KeyDataState;
  /** The first table that differs. */
  readonly first: TablePlace | null;
  readonly tables: number;
  readonly counts: Readonly<
    Record<"equal" | "differs" | "left_only" | "right_only", number> & Partial<Record<"padding" | "not_read" | "not_comparable", number>>
  >;
  /** Ranks that hold the same bytes. */
  readonly copies: number;
  /** Of a consequence: the earlier keys that differ and that it is made of. */
  readonly caused_by: readonly string[];
}

export interface ConfigurationDifference {
  readonly path: string;
  readonly left: unknown;
  readonly right: unknown;
  readonly matters: boolean;
  readonly state: "differs" | "left_only" | "right_only";
  readonly why: Bilingual | null;
}

export interface PreconditionSide {
  readonly state: "ok" | "failed" | "unknown";
  readonly path: string | null;
  readonly value: unknown;
  /** An equation with the numbers put in, or why it cannot be computed. */
  readonly text?: Bilingual;
}

/** What two dumps need to be comparable, and what each side's configuration says about it. */
export interface Precondition {
  readonly code: string;
  readonly text: Bilingual;
  readonly wanted: string;
  readonly left: PreconditionSide;
  readonly right: PreconditionSide;
}

/** One run looked at alone. */
export interface SelfCheck {
  readonly code: string;
  readonly side: "left" | "right";
  readonly key: string;
  readonly state: "ok" | "failed";
  readonly severity: "info" | "warning" | "error";
  readonly tables: number;
  readonly failed: number;
  readonly worst: Num | null;
  readonly first: TablePlace | null;
  readonly text: Bilingual;
}

export interface StagePair {
  readonly left: string | null;
  readonly right: string | null;
  readonly reason: string;
  readonly used: boolean;
  readonly parts: number;
  /** What the option `stage` takes to get this pairing; null where a side's folders have no name to choose by. */
  readonly option: string | null;
  readonly text: Bilingual;
}

export interface Drift {
  readonly key: string | null;
  readonly stage: string | null;
  readonly steps: readonly number[];
  /** null: the step differs and no number says by how much. */
  readonly values: readonly (Num | null)[];
  readonly measure: "max_abs" | "differing_tokens" | "norm_rel" | "mean_abs";
  readonly kind: "none" | "from_start" | "growing" | "late" | "at_times";
  /** Steps that differ, also or only, in what has no size, and why; absent in documents of older versions. */
  readonly without_size?: readonly { readonly step: number; readonly reason: "nonfinite" | "shapes" | "statistics" | "unmeasured" }[];
  readonly text: Bilingual;
}

export interface RunFinding {
  readonly code: string;
  readonly severity: "info" | "warning" | "error";
  readonly modules: readonly string[];
  readonly text: Bilingual;
  readonly evidence: Params;
}

/** The chain a reader follows: table, stage, rank, module. */
export interface RunFirst {
  readonly key_data: string | null;
  readonly stage: string | null;
  readonly step: number | null;
  readonly rank: number | null;
  readonly module: string | null;
}

export interface RunVerdict {
  readonly schema: "probe-web/run-verdict/1";
  readonly left: Partial<SideSummary>;
  readonly right: Partial<SideSummary>;
  readonly verdict: VerdictWord;
  readonly headline: Bilingual;
  readonly first: RunFirst | null;
  /** The part that the chain leads into; null where it leads into none, absent in documents of older versions. */
  readonly first_part?: number | null;
  /** Where that part diverged, on the rank that `first` names. */
  readonly first_origin?: Origin | null;
  readonly configurations: readonly ConfigurationDifference[];
  readonly key_data: readonly KeyData[];
  /** Why key data and configurations could not be compared; the parts were. */
  readonly key_data_error?: ApiProblem | null;
  readonly parts: readonly RunPart[];
  readonly preconditions?: readonly Precondition[] | null;
  readonly checks?: readonly SelfCheck[] | null;
  readonly stage_pairs?: readonly StagePair[] | null;
  readonly drift?: readonly Drift[] | null;
  readonly findings?: readonly RunFinding[] | null;
  readonly timing: Readonly<Record<string, number>>;
}

/** `GET …/loop/`: what the run verdict will say of key data and configurations, which does not wait for the parts. */
export interface LoopDocument extends Pick<RunVerdict, "configurations" | "preconditions" | "key_data" | "checks" | "drift" | "findings"> {
  /** Of the tables alone, null where none is on both sides. */
  readonly verdict: VerdictWord | null;
  readonly tables: number;
  readonly first: (TablePlace & { readonly key: string; readonly since: Bilingual; readonly meaning: Bilingual }) | null;
}

/** One table of a key: the numbers of msprobe's SingleComparator, and what it leaves out. */
export interface KeyTable {
  readonly t: number;
  readonly step: number | null;
  readonly rank: number | null;
  readonly micro_step: number | null;
  readonly id: string;
  /** The right table's place where lists were aligned by content and it is another. */
  readonly right: Omit<TablePlace, "step"> | null;
  readonly state: KeyDataState;
  readonly evidence: "values" | "statistics" | "none";
  readonly left_shape: readonly number[] | null;
  readonly right_shape: readonly number[] | null;
  readonly left_dtype: string | null;
  readonly right_dtype: string | null;
  /** Why there are no numbers. */
  readonly note: string | null;
  readonly left_problem?: ApiProblem | null;
  readonly right_problem?: ApiProblem | null;
  readonly compared: number | null;
  /** The shapes differ: the numbers are of what both have. */
  readonly cropped: boolean;
  /** Percent of the compared values. */
  readonly same: Num | null;
  readonly first_mismatch: number | null;
  readonly max_abs: Num | null;
  readonly max_rel: Num | null;
  readonly within_1e_3: Num | null;
  readonly within_1e_2: Num | null;
  /** Left, right, both at the same place. */
  readonly nan: readonly [number, number, number] | null;
  readonly inf: readonly [number, number] | null;
  /** Within the response's length alone, null where that is not known. */
  readonly masked: {
    readonly compared: number;
    readonly same: Num | null;
    readonly max_abs: Num | null;
    readonly max_rel: Num | null;
  } | null;
  readonly statistics: Readonly<Record<string, readonly [Num | null, Num | null]>> | null;
}

/** `GET …/key-data/{n}/` */
export interface KeyTables {
  readonly n: number;
  readonly key: string;
  readonly kind: KeyDataKind;
  readonly state: KeyDataState;
  readonly tables: readonly KeyTable[];
}

export interface TableRow {
  readonly row: number;
  readonly left_length: number | null;
  readonly right_length: number | null;
  /** Response length in tokens: what lies beyond is padding. */
  readonly valid: number | null;
  readonly same: Num | null;
  readonly first_mismatch: number | null;
  readonly max_abs: Num | null;
  readonly mean_abs: Num | null;
}

/** `GET …/key-data/{n}/tables/{t}/`: values of one row of a table, side by side. */
export interface TableValues {
  readonly n: number;
  readonly key: string;
  readonly kind: KeyDataKind;
  readonly table: KeyTable;
  readonly rows: readonly TableRow[];
  readonly rows_of: number;
  readonly row: number;
  readonly from: number;
  readonly of: number;
  readonly left: readonly (Num | null)[];
  readonly right: readonly (Num | null)[];
  /** Right − left. */
  readonly difference: readonly (Num | null)[];
}
