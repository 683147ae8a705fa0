import { DIRECTION, GRADE, KIND, ROLE } from "./rows";

/**
 * The query language of the box over the tree: terms side by side, all of which must hold.
 *
 *     grade>noise class:RMSNorm dir:bwd layer:3..7 unmatched norm>1e-2 down_proj -act_fn "layers.1"
 *
 * A term that cannot be read is reported with its place and left out; the others still filter. Full-width signs typed under a Chinese
 * input method read as their ASCII twins.
 */
export interface Query {
  readonly terms: readonly Term[];
  readonly errors: readonly QueryError[];
}

export interface QueryError {
  readonly code:
    | "unknown_key"
    | "missing_value"
    | "bad_number"
    | "bad_range"
    | "bad_value"
    | "bad_operator"
    | "unclosed_quote"
    | "lone_negation";
  readonly start: number;
  readonly end: number;
  readonly params: Readonly<Record<string, string>>;
}

export type Comparator = ">" | ">=" | "<" | "<=" | "=" | "!=";

export type NumberField = "difference" | "worst" | "growth" | "floor" | "order" | "call" | "norm";

export type Condition =
  | { readonly type: "text"; readonly text: string; readonly exact: boolean }
  | { readonly type: "number"; readonly field: NumberField; readonly comparator: Comparator; readonly value: number | "floor" }
  | { readonly type: "grade"; readonly comparator: Comparator; readonly grade: number }
  | { readonly type: "layer"; readonly ranges: readonly (readonly [number, number])[] }
  | { readonly type: "direction"; readonly direction: number }
  | { readonly type: "kind"; readonly kinds: readonly number[] }
  | { readonly type: "role"; readonly roles: readonly number[] }
  | { readonly type: "class" | "module" | "reason"; readonly texts: readonly string[] };

export interface Term {
  readonly condition: Condition;
  readonly negated: boolean;
  /** Place in the text as typed, the minus sign included. */
  readonly start: number;
  readonly end: number;
}

const NUMBER_FIELDS: Readonly<Record<string, NumberField>> = {
  difference: "difference",
  diff: "difference",
  worst: "worst",
  growth: "growth",
  floor: "floor",
  order: "order",
  call: "call",
  norm: "norm",
};

const GRADES: Readonly<Record<string, number>> = {
  equal: GRADE.equal,
  rounding: GRADE.rounding,
  noise: GRADE.noise,
  diverged: GRADE.diverged,
  incomparable: GRADE.incomparable,
  none: GRADE.none,
};

const ROLES: Readonly<Record<string, readonly number[]>> = {
  none: [ROLE.none],
  origin: [ROLE.origin],
  inherited: [ROLE.inherited],
  amplified: [ROLE.amplified],
  healed: [ROLE.healed],
  unmatched: [ROLE.leftOnly, ROLE.rightOnly],
  left: [ROLE.leftOnly],
  right: [ROLE.rightOnly],
  nodata: [ROLE.noData],
  incomparable: [ROLE.notComparable],
};

const KINDS: Readonly<Record<string, readonly number[]>> = {
  module: [KIND.module, KIND.container],
  api: [KIND.api],
  part: [KIND.part],
  section: [KIND.section],
};

const DIRECTIONS: Readonly<Record<string, number>> = {
  fwd: DIRECTION.forward,
  forward: DIRECTION.forward,
  bwd: DIRECTION.backward,
  backward: DIRECTION.backward,
};

/** Words that stand for a role without a key. */
const BARE_ROLES = ["unmatched", "origin", "inherited", "amplified", "healed"] as const;

const TEXT_KEYS = ["class", "module", "reason"] as const;

/** Keys as a reader may type them, for help and for the error about an unknown one. */
export const QUERY_KEYS: readonly string[] = [
  "grade",
  "class",
  "dir",
  "layer",
  "role",
  "kind",
  "module",
  "reason",
  "difference",
  "worst",
  "growth",
  "floor",
  "norm",
  "order",
  "call",
];

const FULL_WIDTH: Readonly<Record<string, string>> = {
  "：": ":",
  "＞": ">",
  "＜": "<",
  "＝": "=",
  "，": ",",
  "“": '"',
  "”": '"',
  "　": " ",
  "－": "-",
  "！": "!",
  "％": "%",
};

const SIGN = /[：＞＜＝，“”　－！％]/g;
const KEYED = /^([A-Za-z_]+)(>=|<=|!=|:|=|>|<)(.*)$/s;
const NUMBER = /^[+-]?(\d+\.?\d*|\.\d+)(e[+-]?\d+)?(%?)$/i;
const RANGE = /^(\d*)\.\.(\d*)$/;

export function parseQuery(text: string): Query {
  // One character for one, so that places in the text stay true.
  const plain = text.replace(SIGN, (sign) => FULL_WIDTH[sign] ?? sign);
  const terms: Term[] = [];
  const errors: QueryError[] = [];
  let place = 0;
  while (place < plain.length) {
    if (/\s/.test(plain[place] as string)) {
      place += 1;
      continue;
    }
    const start = place;
    let negated = false;
    if (plain[place] === "-" || plain[place] === "!") {
      negated = true;
      place += 1;
    }
    if (plain[place] === '"') {
      const close = plain.indexOf('"', place + 1);
      const end = close === -1 ? plain.length : close + 1;
      if (close === -1) errors.push({ code: "unclosed_quote", start, end, params: {} });
      else if (close > place + 1) {
        terms.push({ condition: { type: "text", text: plain.slice(place + 1, close).toLowerCase(), exact: true }, negated, start, end });
      }
      place = end;
      continue;
    }
    let end = place;
    while (end < plain.length && !/\s/.test(plain[end] as string)) end += 1;
    const word = plain.slice(place, end);
    place = end;
    if (word === "") {
      errors.push({ code: "lone_negation", start, end, params: {} });
      continue;
    }
    const read = readWord(word);
    if ("code" in read) errors.push({ code: read.code, params: read.params ?? {}, start, end });
    else terms.push({ condition: read, negated, start, end });
  }
  return { terms, errors };
}

type Refusal = { code: QueryError["code"]; params?: Record<string, string> };

function readWord(word: string): Condition | Refusal {
  const keyed = KEYED.exec(word);
  if (keyed === null) {
    const lower = word.toLowerCase();
    const bare = BARE_ROLES.find((role) => role === lower);
    if (bare !== undefined) return { type: "role", roles: ROLES[bare] as readonly number[] };
    return { type: "text", text: lower, exact: false };
  }
  const key = (keyed[1] as string).toLowerCase();
  const operator = keyed[2] as Comparator | ":";
  const value = keyed[3] as string;
  const field = NUMBER_FIELDS[key];
  if (value === "" && (field !== undefined || isWordKey(key))) return { code: "missing_value", params: { key } };
  if (field !== undefined) return readNumber(field, operator, value, key);
  if (key === "grade") return readGrade(operator, value);
  if (!isWordKey(key)) return { code: "unknown_key", params: { key, keys: QUERY_KEYS.join(" ") } };
  if (operator !== ":" && operator !== "=") return { code: "bad_operator", params: { key, operator } };
  const values = value
    .toLowerCase()
    .split(",")
    .filter((part) => part !== "");
  if (values.length === 0) return { code: "missing_value", params: { key } };
  switch (key) {
    case "layer":
      return readLayers(values);
    case "dir":
    case "direction": {
      const direction = DIRECTIONS[values[0] as string];
      return direction === undefined ? oneOf(key, value, ["fwd", "bwd"]) : { type: "direction", direction };
    }
    case "kind":
      return readSet(key, value, values, KINDS, (kinds) => ({ type: "kind", kinds }));
    case "role":
      return readSet(key, value, values, ROLES, (roles) => ({ type: "role", roles }));
    default:
      return { type: key as (typeof TEXT_KEYS)[number], texts: values };
  }
}

function isWordKey(key: string): boolean {
  return ["grade", "layer", "dir", "direction", "kind", "role", ...TEXT_KEYS].includes(key);
}

function oneOf(key: string, value: string, allowed: readonly string[]): Refusal {
  return { code: "bad_value", params: { key, value, allowed: allowed.join(", ") } };
}

function readSet(
  key: string,
  value: string,
  values: readonly string[],
  table: Readonly<Record<string, readonly number[]>>,
  build: (found: readonly number[]) => Condition,
): Condition | Refusal {
  const found: number[] = [];
  for (const name of values) {
    const codes = Object.hasOwn(table, name) ? table[name] : undefined;
    if (codes === undefined) return oneOf(key, value, Object.keys(table));
    found.push(...codes);
  }
  return build(found);
}

function readNumber(field: NumberField, operator: Comparator | ":", value: string, key: string): Condition | Refusal {
  const comparator: Comparator = operator === ":" ? "=" : operator;
  if ((field === "difference" || field === "worst") && (value === "floor" || value === "noise")) {
    return { type: "number", field, comparator, value: "floor" };
  }
  const match = NUMBER.exec(value);
  if (match === null) return { code: "bad_number", params: { key, value } };
  const number = match[3] === "%" ? Number(value.slice(0, -1)) / 100 : Number(value);
  return Number.isFinite(number) ? { type: "number", field, comparator, value: number } : { code: "bad_number", params: { key, value } };
}

function readGrade(operator: Comparator | ":", value: string): Condition | Refusal {
  const grade = Object.hasOwn(GRADES, value.toLowerCase()) ? GRADES[value.toLowerCase()] : undefined;
  if (grade === undefined) return oneOf("grade", value, Object.keys(GRADES));
  const comparator: Comparator = operator === ":" ? "=" : operator;
  // Only equal < rounding < noise < diverged are in an order.
  if (grade > GRADE.diverged && comparator !== "=" && comparator !== "!=") {
    return { code: "bad_operator", params: { key: "grade", operator } };
  }
  return { type: "grade", comparator, grade };
}

function readLayers(values: readonly string[]): Condition | Refusal {
  const ranges: [number, number][] = [];
  for (const value of values) {
    const range = RANGE.exec(value);
    if (range !== null && (range[1] !== "" || range[2] !== "")) {
      const from = range[1] === "" ? 0 : Number(range[1]);
      const to = range[2] === "" ? Number.POSITIVE_INFINITY : Number(range[2]);
      if (from > to) return { code: "bad_range", params: { value } };
      ranges.push([from, to]);
    } else if (/^\d+$/.test(value)) ranges.push([Number(value), Number(value)]);
    else return { code: "bad_range", params: { value } };
  }
  return { type: "layer", ranges };
}
