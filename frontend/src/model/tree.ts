import { at, KIND } from "./rows";

/**
 * The aligned tree as it came over the wire (`docs/formats.md`, format 1): one typed array a column, rows in pre-order, so the subtree of
 * row i is rows i … i + size[i] − 1. Read-only; never copied.
 */
export interface Tree {
  readonly rows: number;
  readonly parent: Int32Array;
  readonly size: Int32Array;
  readonly depth: Uint8Array;
  readonly kind: Uint8Array;
  readonly name: Int32Array;
  readonly right_name: Int32Array;
  readonly module: Int32Array;
  readonly left_class: Int32Array;
  readonly right_class: Int32Array;
  readonly left_count: Uint8Array;
  readonly right_count: Uint8Array;
  readonly direction: Uint8Array;
  readonly call: Int32Array;
  readonly layer: Int16Array;
  readonly role: Uint8Array;
  readonly grade: Uint8Array;
  readonly difference: Float32Array;
  readonly floor: Float32Array;
  readonly worst: Float32Array;
  readonly growth: Float32Array;
  readonly inside_origin: Int32Array;
  readonly inside_inherited: Int32Array;
  readonly inside_amplified: Int32Array;
  readonly order: Int32Array;
  readonly origin: Int16Array;
  readonly reason: Uint8Array;
  /** Optional column: relative difference of the Norm alone. */
  readonly norm: Float32Array | null;
  readonly strings: readonly string[];
  readonly reasons: readonly string[];
  readonly layers: number;
  readonly compared: number;
  readonly directions: readonly string[];
  readonly sides: { readonly left: string; readonly right: string };
  readonly backward: { readonly left: boolean; readonly right: boolean };
}

/** Why bytes are not a tree; `code` is translated by the page, `params` name the place. */
export class TreeFormatError extends Error {
  readonly code: string;
  readonly params: Record<string, string | number>;

  constructor(code: string, params: Record<string, string | number> = {}) {
    super(`${code} ${JSON.stringify(params)}`);
    this.name = "TreeFormatError";
    this.code = code;
    this.params = params;
  }
}

const MAGIC = [0x50, 0x57, 0x54, 0x52, 0x45, 0x45, 0x00, 0x01]; // "PWTREE\0\1"

const ARRAYS = {
  uint8: Uint8Array,
  int16: Int16Array,
  int32: Int32Array,
  float32: Float32Array,
} as const;

type DtypeName = keyof typeof ARRAYS;

const COLUMNS = {
  parent: "int32",
  size: "int32",
  depth: "uint8",
  kind: "uint8",
  name: "int32",
  right_name: "int32",
  module: "int32",
  left_class: "int32",
  right_class: "int32",
  left_count: "uint8",
  right_count: "uint8",
  direction: "uint8",
  call: "int32",
  layer: "int16",
  role: "uint8",
  grade: "uint8",
  difference: "float32",
  floor: "float32",
  worst: "float32",
  growth: "float32",
  inside_origin: "int32",
  inside_inherited: "int32",
  inside_amplified: "int32",
  order: "int32",
  origin: "int16",
  reason: "uint8",
} as const satisfies Record<string, DtypeName>;

type ColumnName = keyof typeof COLUMNS;

interface ColumnPlace {
  dtype: string;
  offset: number;
  length: number;
}

interface Header {
  format: number;
  rows: number;
  columns: Record<string, ColumnPlace>;
  strings: string[];
  reasons: string[];
  layers: number;
  compared: number;
  directions: string[];
  sides: { left: string; right: string };
  backward: { left: boolean; right: boolean };
}

/**
 * Which side a part belongs to: the one whose several records make up a fused one. `right_name` then tells the columns that it fills of the
 * other side's tensor, null where that is not known. Null for every row that is no part.
 */
export function partOf(tree: Tree, row: number): { readonly side: "left" | "right"; readonly columns: string | null } | null {
  if (at(tree.kind, row) !== KIND.part) return null;
  return { side: at(tree.left_count, row) > 0 ? "left" : "right", columns: textOf(tree, tree.right_name, row) };
}

/** Decode `tree.bin`. Throws `TreeFormatError` on anything that is not exactly a well-formed tree of format 1. */
export function decodeTree(buffer: ArrayBuffer): Tree {
  const { header, base } = readHeader(buffer);
  const columns = {} as Record<ColumnName, Uint8Array | Int16Array | Int32Array | Float32Array>;
  for (const name of Object.keys(COLUMNS) as ColumnName[]) {
    const place = header.columns[name];
    if (place === undefined) throw new TreeFormatError("tree_column_missing", { column: name });
    columns[name] = viewColumn(buffer, base, name, place, COLUMNS[name], header.rows);
  }
  const norm = header.columns.norm;
  const tree = {
    rows: header.rows,
    ...columns,
    norm: norm === undefined ? null : viewColumn(buffer, base, "norm", norm, "float32", header.rows),
    strings: header.strings,
    reasons: header.reasons,
    layers: header.layers,
    compared: header.compared,
    directions: header.directions,
    sides: header.sides,
    backward: header.backward,
  } as unknown as Tree;
  checkStructure(tree);
  return tree;
}

function readHeader(buffer: ArrayBuffer): { header: Header; base: number } {
  if (buffer.byteLength < 12) throw new TreeFormatError("tree_truncated", { bytes: buffer.byteLength });
  const bytes = new Uint8Array(buffer);
  for (let i = 0; i < 7; i += 1) {
    if (bytes[i] !== MAGIC[i]) throw new TreeFormatError("tree_magic", { byte: i });
  }
  if (bytes[7] !== MAGIC[7]) throw new TreeFormatError("tree_version", { format: bytes[7] as number });
  const headerLength = new DataView(buffer).getUint32(8, true);
  const base = 12 + headerLength;
  if (base > buffer.byteLength) throw new TreeFormatError("tree_truncated", { bytes: buffer.byteLength });
  if (base % 8 !== 0) throw new TreeFormatError("tree_alignment", { column: "header" });
  let header: Header;
  try {
    header = JSON.parse(new TextDecoder("utf-8", { fatal: true }).decode(bytes.subarray(12, base))) as Header;
  } catch {
    throw new TreeFormatError("tree_header", {});
  }
  if (header === null || typeof header !== "object") throw new TreeFormatError("tree_header", {});
  if (header.format !== 1) throw new TreeFormatError("tree_version", { format: String(header.format) });
  const shaped =
    Number.isInteger(header.rows) &&
    header.rows >= 0 &&
    typeof header.columns === "object" &&
    header.columns !== null &&
    Array.isArray(header.strings) &&
    header.strings.every((text) => typeof text === "string") &&
    Array.isArray(header.reasons) &&
    Number.isInteger(header.layers) &&
    Number.isInteger(header.compared) &&
    Array.isArray(header.directions) &&
    typeof header.sides === "object" &&
    header.sides !== null &&
    typeof header.backward === "object" &&
    header.backward !== null;
  if (!shaped) throw new TreeFormatError("tree_header", {});
  return { header, base };
}

function viewColumn(buffer: ArrayBuffer, base: number, name: string, place: ColumnPlace, dtype: DtypeName, rows: number) {
  if (place.dtype !== dtype) throw new TreeFormatError("tree_column_dtype", { column: name, dtype: String(place.dtype) });
  if (place.length !== rows) throw new TreeFormatError("tree_column_length", { column: name, length: place.length, rows });
  if (!Number.isInteger(place.offset) || place.offset < 0 || place.offset % 8 !== 0) {
    throw new TreeFormatError("tree_alignment", { column: name });
  }
  const Typed = ARRAYS[dtype];
  const start = base + place.offset;
  if (start + rows * Typed.BYTES_PER_ELEMENT > buffer.byteLength) throw new TreeFormatError("tree_truncated", { column: name });
  return new Typed(buffer, start, rows);
}

/** Pre-order, nesting and every index in range: what the rest of the page relies on without looking again. */
function checkStructure(tree: Tree): void {
  const { rows, parent, size, depth, strings, reasons } = tree;
  const last = strings.length;
  for (let row = 0; row < rows; row += 1) {
    const above = at(parent, row);
    const extent = at(size, row);
    const inside =
      above === -1
        ? at(depth, row) === 0 && row + extent <= rows
        : above >= 0 && above < row && row + extent <= above + at(size, above) && at(depth, row) === at(depth, above) + 1;
    if (!inside || extent < 1) throw new TreeFormatError("tree_nesting", { row });
    const named =
      inRange(tree.name, row, 0, last) &&
      inRange(tree.module, row, -1, last) &&
      inRange(tree.right_name, row, -1, last) &&
      inRange(tree.left_class, row, -1, last) &&
      inRange(tree.right_class, row, -1, last);
    if (!named) throw new TreeFormatError("tree_string", { row });
    const reason = at(tree.reason, row);
    if (reason !== 255 && reason >= reasons.length) throw new TreeFormatError("tree_reason", { row });
  }
}

function inRange(column: ArrayLike<number>, row: number, from: number, to: number): boolean {
  const value = at(column, row);
  return value >= from && value < to;
}

/** Text of a string column, or null where the column says "none". */
export function textOf(tree: Tree, column: Int32Array, row: number): string | null {
  const index = at(column, row);
  return index < 0 ? null : (tree.strings[index] as string);
}

export function nameOf(tree: Tree, row: number): string {
  return textOf(tree, tree.name, row) as string;
}

/** Canonical path; a section stands for no module and has its own name. */
export function moduleOf(tree: Tree, row: number): string {
  return textOf(tree, tree.module, row) ?? nameOf(tree, row);
}

export function reasonOf(tree: Tree, row: number): string | null {
  const index = at(tree.reason, row);
  return index === 255 ? null : (tree.reasons[index] as string);
}
