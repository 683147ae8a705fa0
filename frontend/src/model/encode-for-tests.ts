/**
 * A writer of `tree.bin`, for tests alone and written from `docs/formats.md` and not from the decoder: bytes are put down one by one.
 * Rows are nested literals; what a row leaves out has the value of a matched, equal, uncompared module.
 */
export interface RowLiteral {
  name: string;
  rightName?: string;
  module?: string;
  leftClass?: string;
  rightClass?: string;
  leftCount?: number;
  rightCount?: number;
  kind?: number;
  direction?: number;
  call?: number;
  layer?: number;
  role?: number;
  grade?: number;
  difference?: number;
  floor?: number;
  worst?: number;
  growth?: number;
  order?: number;
  origin?: number;
  reason?: string;
  children?: RowLiteral[];
}

type Column = [dtype: "uint8" | "int16" | "int32" | "float32", values: number[]];

export interface Parts {
  header: Record<string, unknown>;
  columns: Record<string, Column>;
}

/** Header and columns before they become bytes, so that a test can spoil either. */
export function assemble(roots: RowLiteral[]): Parts {
  const strings: string[] = [];
  const reasons: string[] = [];
  const known = new Map<string[], Map<string, number>>();
  const intern = (table: string[], text: string | undefined): number => {
    if (text === undefined) return -1;
    const places = known.get(table) ?? new Map<string, number>();
    known.set(table, places);
    const place = places.get(text);
    if (place !== undefined) return place;
    places.set(text, table.length);
    return table.push(text) - 1;
  };
  const rows: Record<string, number>[] = [];
  const visit = (row: RowLiteral, parent: number, depth: number, path: string): { size: number; counts: number[] } => {
    const index = rows.length;
    const module = row.module ?? (row.kind === 0 ? undefined : path === "" ? row.name : `${path}.${row.name}`);
    const own: Record<string, number> = {
      parent,
      depth,
      kind: row.kind ?? 1,
      name: intern(strings, row.name),
      right_name: intern(strings, row.rightName),
      module: intern(strings, module),
      left_class: intern(strings, row.leftClass),
      right_class: intern(strings, row.rightClass),
      left_count: row.leftCount ?? 1,
      right_count: row.rightCount ?? 1,
      direction: row.direction ?? 0,
      call: row.call ?? 0,
      layer: row.layer ?? -1,
      role: row.role ?? 0,
      grade: row.grade ?? 0,
      difference: row.difference ?? Number.NaN,
      floor: row.floor ?? 0.008,
      worst: row.worst ?? Number.NaN,
      growth: row.growth ?? Number.NaN,
      order: row.order ?? -1,
      origin: row.origin ?? -1,
      reason: row.reason === undefined ? 255 : intern(reasons, row.reason),
    };
    rows.push(own);
    let size = 1;
    const counts = [0, 0, 0];
    for (const child of row.children ?? []) {
      const below = visit(child, index, depth + 1, module ?? "");
      size += below.size;
      for (let role = 1; role <= 3; role += 1) {
        counts[role - 1] = (counts[role - 1] as number) + (below.counts[role - 1] as number) + (child.role === role ? 1 : 0);
      }
    }
    own.size = size;
    own.inside_origin = counts[0] as number;
    own.inside_inherited = counts[1] as number;
    own.inside_amplified = counts[2] as number;
    return { size, counts };
  };
  for (const root of roots) visit(root, -1, 0, "");
  const dtypes: Record<string, Column[0]> = {
    depth: "uint8",
    kind: "uint8",
    left_count: "uint8",
    right_count: "uint8",
    direction: "uint8",
    role: "uint8",
    grade: "uint8",
    reason: "uint8",
    layer: "int16",
    origin: "int16",
    difference: "float32",
    floor: "float32",
    worst: "float32",
    growth: "float32",
  };
  const columns: Record<string, Column> = {};
  const first = rows[0] ?? {};
  for (const name of Object.keys(first)) columns[name] = [dtypes[name] ?? "int32", rows.map((row) => row[name] as number)];
  const header = {
    format: 1,
    rows: rows.length,
    strings,
    reasons,
    layers: new Set(rows.map((row) => row.layer).filter((layer) => layer !== -1)).size,
    compared: rows.reduce((most, row) => Math.max(most, (row.order as number) + 1), 0),
    directions: ["forward"],
    sides: { left: "train", right: "infer" },
    backward: { left: true, right: false },
  };
  return { header, columns };
}

const WIDTH = { uint8: 1, int16: 2, int32: 4, float32: 4 } as const;

export function encode({ header, columns }: Parts): ArrayBuffer {
  const places: Record<string, unknown> = {};
  let offset = 0;
  for (const [name, [dtype, values]] of Object.entries(columns)) {
    places[name] = { dtype, offset, length: values.length };
    offset += Math.ceil((values.length * WIDTH[dtype]) / 8) * 8;
  }
  const text = new TextEncoder().encode(JSON.stringify({ ...header, columns: { ...places, ...(header.columns as object | undefined) } }));
  const headerLength = Math.ceil((12 + text.length) / 8) * 8 - 12;
  const buffer = new ArrayBuffer(12 + headerLength + offset);
  const bytes = new Uint8Array(buffer);
  const data = new DataView(buffer);
  "PWTREE".split("").forEach((letter, index) => {
    data.setUint8(index, letter.charCodeAt(0));
  });
  data.setUint8(7, 1);
  data.setUint32(8, headerLength, true);
  bytes.fill(0x20, 12, 12 + headerLength);
  bytes.set(text, 12);
  let start = 12 + headerLength;
  for (const [dtype, values] of Object.values(columns)) {
    values.forEach((value, index) => {
      const at = start + index * WIDTH[dtype];
      if (dtype === "uint8") data.setUint8(at, value);
      else if (dtype === "int16") data.setInt16(at, value, true);
      else if (dtype === "int32") data.setInt32(at, value, true);
      else data.setFloat32(at, value, true);
    });
    start += Math.ceil((values.length * WIDTH[dtype]) / 8) * 8;
  }
  return buffer;
}

export function treeBytes(roots: RowLiteral[]): ArrayBuffer {
  return encode(assemble(roots));
}

/** A layer of a dense decoder with six modules. */
export function layer(index: number, own: Partial<RowLiteral> = {}, downProj: Partial<RowLiteral> = {}): RowLiteral {
  const order = index * 6;
  return {
    name: `layers.${index}`,
    layer: index,
    order: order + 5,
    difference: 0.002,
    grade: 1,
    ...own,
    children: [
      { name: "input_layernorm", leftClass: "Qwen2RMSNorm", rightClass: "RMSNorm", layer: index, order, difference: 0.001, grade: 1 },
      {
        name: "self_attn",
        layer: index,
        order: order + 2,
        difference: 0.002,
        grade: 2,
        children: [
          {
            name: "q_proj, k_proj, v_proj",
            rightName: "qkv_proj",
            leftClass: "Linear",
            rightClass: "QKVParallelLinear",
            leftCount: 3,
            layer: index,
            order: order + 1,
            difference: 0.003,
            grade: 2,
          },
        ],
      },
      {
        name: "mlp",
        layer: index,
        order: order + 4,
        difference: 0.002,
        grade: 1,
        children: [
          {
            name: "down_proj",
            leftClass: "Linear",
            rightClass: "RowParallelLinear",
            layer: index,
            order: order + 3,
            difference: 0.002,
            grade: 1,
            ...downProj,
          },
        ],
      },
    ],
  };
}
