/**
 * The documents of `/api/v1/`: what the server promises, named as the server names it. Numbers that JSON cannot hold are words. `schema.d.ts`
 * is made from the server's own description and holds addresses and parameters; the documents inside are described there as plain objects.
 */

import type { ConfigurationDifference, Precondition, RunVerdict } from "./run-verdict";

export type Num = number | "NaN" | "Infinity" | "-Infinity";
export type Role = "train" | "infer";
export interface Bilingual {
  readonly en: string;
  readonly zh: string;
}
export type Params = Readonly<Record<string, unknown>>;

/** Every refusal: `code` is translated here, `message` is the server's English sentence. */
export interface ApiProblem {
  readonly code: string;
  readonly params: Params;
  readonly message: string;
  /** File (with member, record or offset) that a failed job stumbled over; "" or absent where none is to blame. */
  readonly where?: string;
  /** Of a comparison: the run that could not be read. */
  readonly run?: string;
}

export interface About {
  readonly version: string;
  /** The address that links carry, without a path. */
  readonly public_url: string;
  readonly loopback_only: boolean;
  /** Whether this browser may send dumps and ask for comparisons: false where a token or the key is asked of it. */
  readonly may_send: boolean;
  /** How to start the server again so that others reach it; null where that is not this machine's to say. */
  readonly share_command: string | null;
  /** Slug of the example comparison, null where none was loaded. */
  readonly example: string | null;
  readonly examples: Readonly<Record<string, string>>;
  readonly limits: { readonly upload_bytes: number; readonly run_files: number };
}

/** What a worker last said: empty before it said anything. */
export interface Progress {
  readonly stage?: string;
  /** 0…1 within the stage. */
  readonly fraction?: number;
  /** Numbers to show, such as `bytes` and `of`, or `records`. */
  readonly [figure: string]: number | string | undefined;
}

export interface InventoryDump {
  readonly folder: string;
  readonly place: string;
  readonly stage: string | null;
  readonly step: number | null;
  readonly rank: number | null;
  readonly records: number;
  readonly slots: number;
  readonly construct: boolean;
  readonly stack: boolean;
}

export interface LeftAside {
  readonly path: string;
  readonly reason: string;
}

export interface UnreadableDump {
  readonly place: string;
  readonly stage: string | null;
  readonly step: number | null;
  readonly rank: number | null;
  readonly error: ApiProblem;
}

/** Something that was taken otherwise than it stands in the file. */
export interface Note {
  readonly code: string;
  readonly place: string;
  readonly count: number;
  readonly record: string;
  readonly text: Bilingual;
}

export interface Inventory {
  readonly format: number;
  readonly name: string;
  readonly role: Role | "unknown";
  readonly role_evidence: string;
  /** Of the dumps: null where there is none, as in a run of key data or of a configuration alone. */
  readonly framework: string | null;
  readonly wrapping: string | null;
  readonly task: string | null;
  readonly level: string | null;
  readonly dtype: string | null;
  readonly stages: readonly string[];
  readonly steps: readonly number[];
  readonly ranks: readonly number[];
  readonly counts: { readonly dumps: number; readonly records: number; readonly slots: number; readonly bytes: number };
  readonly dumps: readonly InventoryDump[];
  readonly missing: readonly string[];
  /** Dumps that are there and cannot be read, while others can; inventories that were stored before there were such have none. */
  readonly unreadable?: readonly UnreadableDump[];
  /** Inventories that were stored before there were notes have none. */
  readonly notes?: readonly Note[];
  /** Tables between the stages of an RL loop. */
  readonly key_data?: { readonly keys: readonly string[]; readonly tables: number } | null;
  /** Which file the trainer's configuration was read from. */
  readonly configuration?: string | null;
  readonly left_aside: readonly LeftAside[];
  readonly digest: string;
}

export type RunState = "queued" | "parsing" | "ready" | "failed";

export interface Run {
  readonly id: string;
  readonly url: string;
  readonly name: string;
  readonly role: Role | "auto";
  readonly state: RunState;
  readonly progress: Progress;
  readonly error: ApiProblem | null;
  readonly inventory: Inventory | null;
  readonly sha256: string;
  /** Bytes of the files that were sent. */
  readonly size: number;
  readonly created_at: string;
}

export type ComparisonState = "queued" | "running" | "done" | "failed" | "cancelled" | "interrupted";
export type VerdictWord = "identical" | "consistent" | "diverged" | "not_comparable";

export interface SideSummary {
  readonly name: string;
  readonly role: Role;
  readonly framework: string;
  readonly task: string;
  readonly level: string;
  readonly step: number | null;
  readonly ranks: readonly number[];
  readonly records: number;
  readonly dtype?: string | null;
  readonly wrapping?: string | null;
}

export type PremiseCode = "tokens" | "length" | "positions" | "weights" | "overlap";
export interface Premise {
  readonly code: PremiseCode;
  readonly state: "ok" | "failed" | "unknown";
  readonly detail: Params;
}

export type GradeWord = "equal" | "rounding" | "noise" | "diverged" | "incomparable";
export type DirectionWord = "forward" | "backward";

export interface FirstDifference {
  readonly module: string;
  readonly left: readonly string[];
  readonly right: readonly string[];
  readonly slot: string;
  readonly direction: DirectionWord;
  readonly order: number;
  readonly grade: GradeWord;
}

export interface Cause {
  readonly code: string;
  readonly score: number;
  readonly text: Bilingual;
  /** What would tell it from the others; documents of older versions have none. */
  readonly advice?: Bilingual | null;
}

export interface Origin {
  readonly module: string;
  readonly left: readonly string[];
  readonly right: readonly string[];
  readonly slot: string;
  readonly direction: DirectionWord;
  readonly order: number;
  readonly of: number;
  readonly stage: string | null;
  readonly step: number | null;
  readonly rank: number | null;
  readonly kind: "origin" | "nonfinite" | "between" | "weights";
  readonly after: string | null;
  readonly before: string | null;
  /** Of kind `origin` alone, and not in documents from before it was told. */
  readonly inputs?: "agree" | "some_not_compared" | "not_compared" | null;
  readonly evidence: Readonly<Record<string, Num | null>>;
  readonly confidence: "high" | "medium" | "low";
  readonly causes: readonly Cause[];
}

export interface LayerRow {
  readonly index: number;
  readonly left: string;
  readonly right: string;
  readonly left_norm: Num | null;
  readonly right_norm: Num | null;
  readonly norm_rel: Num | null;
  /** Of the elements, where tensors were compared. */
  readonly rel_l2?: Num | null;
  readonly ulps: Num | null;
  readonly grade: GradeWord;
  readonly compared: string;
  /** What pairing by name would have shown, where the output had to be looked for elsewhere. */
  readonly by_name?: { readonly slot: string; readonly norm: Num; readonly norm_rel: Num } | null;
}

export interface Finding {
  readonly code: string;
  readonly severity: "info" | "warning" | "error";
  readonly modules: readonly string[];
  readonly text: Bilingual;
  readonly evidence: Params;
}

export interface SideCoverage {
  readonly records: number;
  readonly matched: number;
  readonly explained: number;
}

/** `probe-web/verdict/1`: one part against one part. */
export interface PartVerdict {
  readonly schema: "probe-web/verdict/1";
  readonly left: SideSummary;
  readonly right: SideSummary;
  readonly verdict: VerdictWord;
  readonly headline: Bilingual;
  readonly premises: readonly Premise[];
  readonly first_difference: FirstDifference | null;
  readonly first_divergence: Origin | null;
  readonly origins: readonly Origin[];
  readonly coverage: { readonly left: SideCoverage; readonly right: SideCoverage };
  readonly layers: readonly LayerRow[];
  readonly findings: readonly Finding[];
  readonly counts: Readonly<
    Record<"pairs" | "equal" | "rounding" | "noise" | "diverged" | "incomparable" | "unmatched_left" | "unmatched_right", number>
  >;
  readonly timing: Readonly<Record<string, number>>;
  /** Where a side of a comparison of one part has a configuration; those of a run verdict are the run's. */
  readonly configurations?: readonly ConfigurationDifference[];
  readonly preconditions?: readonly Precondition[];
}

export type { RunPart, RunVerdict } from "./run-verdict";
export type Verdict = PartVerdict | RunVerdict;

export interface ComparisonSide {
  /** null for whoever came by a read-only link. */
  readonly id: string | null;
  readonly name: string;
  readonly role: Role | "auto";
  readonly state: RunState;
  readonly progress: Progress;
  readonly error: ApiProblem | null;
  readonly inventory: Inventory | null;
}

interface ComparisonBase {
  readonly id: string;
  readonly url: string;
  readonly name: string;
  readonly tags: readonly string[];
  readonly state: ComparisonState;
  readonly progress: Progress;
  readonly error: ApiProblem | null;
  /** The verdict in a sentence, null while there is none. */
  readonly headline: Bilingual | null;
  readonly first_module: string;
  /** Which shipped example it is, "" = none. */
  readonly example: string;
  readonly created_at: string;
  readonly updated_at: string;
  readonly finished_at: string | null;
}

/** A comparison in a list. */
export interface ComparisonRow extends ComparisonBase {
  readonly left: { readonly name: string; readonly role: Role | "auto" };
  readonly right: { readonly name: string; readonly role: Role | "auto" };
  readonly verdict: VerdictWord | null;
}

/** One part while the comparison runs and after; its own verdict can be read as soon as it is done. */
export interface PartState {
  readonly n: number;
  readonly stage: string | null;
  readonly step: number | null;
  readonly state: "queued" | "running" | "done" | "failed" | "cancelled";
  readonly verdict: VerdictWord | "left_only" | "right_only" | null;
  readonly error: ApiProblem | null;
}

/** Key data and configurations of several parts: they do not wait for the parts. */
export interface LoopState {
  readonly state: PartState["state"];
  readonly error: ApiProblem | null;
}

export interface Comparison extends ComparisonBase {
  readonly left: ComparisonSide;
  readonly right: ComparisonSide;
  readonly options: Params;
  readonly cancel_requested_at: string | null;
  /** The comparison of the same runs that this one was begun from, with other rules of mapping. */
  readonly previous: string | null;
  /** In the order of the pipeline; empty until a worker knows which there are. */
  readonly parts: readonly PartState[];
  /** null where neither run holds any, and where one worker does it all. */
  readonly loop: LoopState | null;
  /** Opened by a link that only lets one look. */
  readonly read_only: boolean;
  /** As soon as it is known, which may be before `done`. */
  readonly verdict: Verdict | null;
}

/** Where a new run or comparison is. */
export interface Created {
  readonly id: string;
  readonly url: string;
  readonly state: string;
}

export interface Page<Row> {
  readonly results: readonly Row[];
  /** Cursor of the next page, null on the last. */
  readonly next: string | null;
}

export interface SlotStatistic {
  readonly name: "norm" | "max" | "min" | "mean" | "value";
  readonly left: Num | string | null;
  readonly right: Num | string | null;
  readonly difference: Num | null;
  readonly relative: Num | null;
  readonly of: "norm" | "rms" | "extreme" | null;
  readonly ulps: Num | null;
  readonly over: boolean;
}

export interface SlotChecksum {
  readonly left: string | null;
  readonly right: string | null;
  readonly state: "equal" | "differs" | "not_compared";
}

export interface SlotPlace {
  readonly record: string;
  readonly slot: string;
  readonly dtype: string | null;
  readonly shape: readonly number[] | null;
}

export type FloorSource = "profile" | "measured" | "frozen" | "baseline";

export interface NodeSlot {
  readonly group: "input" | "parameters" | "output" | "parameters_grad";
  readonly slot: string;
  readonly left: readonly SlotPlace[];
  readonly right: readonly SlotPlace[];
  readonly relation: RelationWord;
  /** null for a slot without a partner. */
  readonly reason: { readonly code: string; readonly text: Bilingual } | null;
  readonly elsewhere: boolean;
  readonly state: "agrees" | "differs" | "first" | "left_only" | "right_only" | "not_comparable";
  readonly grade: GradeWord | "no_pair";
  readonly order: number | null;
  readonly floor: Num | null;
  /** What decided the floor; null: none is applied (weights, integers, a determinism check). */
  readonly floor_source: FloorSource | null;
  /** What the ulps are units of; null: exact, or nothing to compare. */
  readonly precision: "fp8" | "bf16" | "fp16" | "fp32" | "fp64" | null;
  readonly statistics: readonly SlotStatistic[];
  /** null where neither side wrote one, or an end is several slots. */
  readonly checksum?: SlotChecksum | null;
  /** What the elements themselves say; null where the dumps name no tensor files for the slot. */
  readonly tensor: TensorDetail | null;
}

/** RMS of the difference along rows or columns, over that of the whole tensor; `values` are means over equal stretches of `length`. */
export interface TensorProfile {
  readonly length: number;
  readonly values: readonly Num[];
}

export interface MeasuredTensor {
  readonly state: "compared";
  readonly fault: null;
  readonly layout: "same" | "reshaped" | "permuted" | "unpadded" | "first_rows";
  readonly elements: number;
  readonly identical: number;
  readonly cosine: Num;
  readonly relative_l2: Num;
  readonly max_absolute: Num;
  readonly max_relative: Num;
  readonly within_thousandth: Num;
  readonly within_five_thousandths: Num;
  readonly nan: readonly [number, number];
  readonly infinite: readonly [number, number];
  readonly misplaced: number;
  /** `counts[i]` elements lie further apart than `edges[i − 1]` steps and at most `edges[i]`; one more count is of all beyond. */
  readonly ulps: { readonly of: string; readonly edges: readonly number[]; readonly counts: readonly number[] } | null;
  readonly rows: TensorProfile;
  readonly columns: TensorProfile;
  readonly worst: readonly {
    readonly row: number;
    readonly column: number;
    readonly left: Num;
    readonly right: Num;
    readonly difference: Num;
  }[];
}

export interface UnmeasuredTensor {
  readonly state: "missing" | "broken" | "unlike" | "empty";
  readonly fault: {
    readonly side: "left" | "right";
    readonly file: string;
    readonly code: string;
    readonly params: Params;
    readonly message: string;
  } | null;
}

export type TensorDetail = MeasuredTensor | UnmeasuredTensor;

export type RelationWord = "same" | "concat" | "sum" | "alias" | "shard-concat" | "replicated" | "none";

/** `GET …/nodes/{n}/`: one row of the tree in full. */
export interface NodeDetail {
  readonly n: number;
  /** null for a section. */
  readonly module: string | null;
  readonly kind: string;
  readonly direction: DirectionWord;
  readonly call: number;
  readonly layer: number;
  readonly left: readonly { readonly name: string; readonly class: string | null }[];
  readonly right: readonly { readonly name: string; readonly class: string | null }[];
  readonly relation: RelationWord;
  readonly confidence: "high" | "medium" | "low" | null;
  readonly role: string;
  readonly grade: GradeWord | "no_pair";
  readonly difference: Num | null;
  readonly floor: Num | null;
  readonly growth: Num | null;
  readonly order: number | null;
  readonly of: number | null;
  readonly explanation: { readonly code: string; readonly text: Bilingual } | null;
  readonly slots: readonly NodeSlot[];
  readonly stacks: { readonly left: readonly string[]; readonly right: readonly string[] };
}
