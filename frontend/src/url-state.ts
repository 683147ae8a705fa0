/**
 * What a reader sees of a comparison, as one short text: the part after `#` of `/c/<slug>`.
 *
 * The fragment and not the query: it never reaches a server, so no limit on a request line and no log applies to it.
 * `v` is the codec's version. Reading is tolerant: a member that is missing, unknown or broken falls back to its default, a newer version is
 * read as far as its members are known, so an old page opens a new link and a new page an old one. Writing leaves defaults out.
 */

export const URL_STATE_VERSION = 1;

/** The page's views of the same selection; `verdict` and `detail` are tabs of their own on a phone only. */
export const VIEW_TABS = ["tree", "graph", "layers", "timeline", "verdict", "detail"] as const;
export type ViewTab = (typeof VIEW_TABS)[number];

export const RANK_COLUMNS = ["all", "worst"] as const;
export type RankColumns = (typeof RANK_COLUMNS)[number];

export interface ViewState {
  /** Part of a run verdict (`parts[].n`), null where there is only one. */
  readonly part: number | null;
  /** Of a run verdict's overview: the key-data table (`key_data[].n`), one entry of it and a row of that; null = the page's own choice. */
  readonly table: number | null;
  readonly entry: number | null;
  readonly row: number | null;
  /** One cell a step instead of one a rank; null = the page's own choice, which depends on what fits. */
  readonly ranks: RankColumns | null;
  /** Selected row of the tree; null = the page's own choice (the first divergence). */
  readonly node: number | null;
  /** null = the page's own choice. */
  readonly tab: ViewTab | null;
  /** The filter text as typed. */
  readonly query: string;
  /** Rows that are open, ascending; null = the page's own choice, which differs from "none". */
  readonly opened: readonly number[] | null;
  /** First row of the tree that is in sight. */
  readonly anchor: number | null;
  /** Brushed stretch of the timeline, in execution order, both ends included. */
  readonly brush: readonly [number, number] | null;
  /** Origins that the reader set aside, indices into the verdict's `origins`, ascending. */
  readonly ignored: readonly number[];
}

export const DEFAULT_VIEW: ViewState = {
  part: null,
  table: null,
  entry: null,
  row: null,
  ranks: null,
  node: null,
  tab: null,
  query: "",
  opened: null,
  anchor: null,
  brush: null,
  ignored: [],
};

/** Above this many characters the set of opened rows is not worth its length in a link; the page's own choice stands in. */
export const MAX_SET_LENGTH = 6000;

const BASE = 36;
const MAX_ROW = 0x7fffffff;

/**
 * Ascending whole numbers as runs in base 36: the gap to the previous run's end, then `~length−1` where a run is longer than one.
 * `[3, 4, 5, 9]` is `3~2.3`.
 */
export function encodeSet(numbers: readonly number[]): string {
  const runs: string[] = [];
  let end = -1;
  for (let index = 0; index < numbers.length; ) {
    const start = numbers[index] as number;
    let last = start;
    index += 1;
    while (numbers[index] === last + 1) {
      last += 1;
      index += 1;
    }
    const gap = (start - end - 1).toString(BASE);
    runs.push(last > start ? `${gap}~${(last - start).toString(BASE)}` : gap);
    end = last;
  }
  return runs.join(".");
}

/** The inverse of encodeSet; null where the text is not one. */
export function decodeSet(text: string): number[] | null {
  const numbers: number[] = [];
  if (text === "") return numbers;
  let end = -1;
  for (const run of text.split(".")) {
    const match = /^([0-9a-z]{1,7})(?:~([0-9a-z]{1,7}))?$/.exec(run);
    if (match === null) return null;
    const start = end + 1 + Number.parseInt(match[1] as string, BASE);
    const last = start + (match[2] === undefined ? 0 : Number.parseInt(match[2], BASE));
    // A hostile link must not make the page allocate: no tree has more rows than this.
    if (last > MAX_ROW || last - start + numbers.length > 2_000_000) return null;
    for (let row = start; row <= last; row += 1) numbers.push(row);
    end = last;
  }
  return numbers;
}

function encodeNumber(value: number): string {
  return value.toString(BASE);
}

function decodeNumber(text: string | null): number | null {
  if (text === null || !/^[0-9a-z]{1,7}$/.test(text)) return null;
  const value = Number.parseInt(text, BASE);
  return value <= MAX_ROW ? value : null;
}

/** Spaces as `+`, and the marks that a browser leaves alone in a fragment stay readable: `q=grade%3Enoise+layer:3..7`. */
function encodeText(text: string): string {
  return encodeURIComponent(text).replace(/%20/g, "+").replace(/%3A/g, ":").replace(/%2C/g, ",").replace(/%2F/g, "/");
}

function decodeText(text: string): string | null {
  try {
    return decodeURIComponent(text.replace(/\+/g, "%20"));
  } catch {
    return null;
  }
}

/** The state as a fragment without `#`; empty for the default. */
export function encodeView(state: ViewState): string {
  const members: [string, string][] = [];
  if (state.part !== null) members.push(["p", encodeNumber(state.part)]);
  if (state.table !== null) members.push(["k", encodeNumber(state.table)]);
  if (state.entry !== null) members.push(["e", encodeNumber(state.entry)]);
  if (state.row !== null) members.push(["r", encodeNumber(state.row)]);
  if (state.ranks !== null) members.push(["w", state.ranks]);
  if (state.node !== null) members.push(["n", encodeNumber(state.node)]);
  if (state.tab !== null) members.push(["t", state.tab]);
  if (state.query !== "") members.push(["q", encodeText(state.query)]);
  if (state.opened !== null) {
    const opened = encodeSet(state.opened);
    if (opened.length <= MAX_SET_LENGTH) members.push(["o", opened]);
  }
  if (state.anchor !== null) members.push(["a", encodeNumber(state.anchor)]);
  if (state.brush !== null) members.push(["b", state.brush.map(encodeNumber).join("-")]);
  if (state.ignored.length > 0) members.push(["i", encodeSet(state.ignored)]);
  if (members.length === 0) return "";
  return [["v", String(URL_STATE_VERSION)], ...members].map(([key, value]) => `${key}=${value}`).join("&");
}

/** Reads a fragment, with or without `#`. Never throws. */
export function decodeView(fragment: string): ViewState {
  const members = new Map<string, string>();
  for (const member of fragment.replace(/^#/, "").split("&")) {
    const equals = member.indexOf("=");
    if (equals > 0) members.set(member.slice(0, equals), member.slice(equals + 1));
  }
  const text = (key: string): string | null => decodeText(members.get(key) ?? "");
  const tab = text("t");
  const ranks = text("w");
  const opened = members.get("o");
  const brush = (text("b") ?? "").split("-").map(decodeNumber);
  const [from, to] = brush;
  return {
    part: decodeNumber(text("p")),
    table: decodeNumber(text("k")),
    entry: decodeNumber(text("e")),
    row: decodeNumber(text("r")),
    ranks: RANK_COLUMNS.find((known) => known === ranks) ?? null,
    node: decodeNumber(text("n")),
    tab: VIEW_TABS.find((known) => known === tab) ?? null,
    query: text("q") ?? "",
    opened: opened === undefined ? null : decodeSet(decodeText(opened) ?? "!"),
    anchor: decodeNumber(text("a")),
    brush: brush.length === 2 && typeof from === "number" && typeof to === "number" && from <= to ? [from, to] : null,
    ignored: decodeSet(text("i") ?? "!") ?? [],
  };
}
