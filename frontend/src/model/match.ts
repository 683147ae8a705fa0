import type { Comparator, Condition, Query, Term } from "./query";
import { at, GRADE, KIND } from "./rows";
import type { Tree } from "./tree";

/**
 * Runs queries over a tree. Text is looked up once a distinct string, not once a row, so 100k rows cost a few milliseconds.
 * Keeps lower-cased strings; make one for a tree and keep it.
 */
export class Matcher {
  readonly #tree: Tree;
  #lower: string[] | null = null;

  constructor(tree: Tree) {
    this.#tree = tree;
  }

  /** 1 for every row that satisfies every term; null when the query asks nothing. */
  run(query: Query): Uint8Array | null {
    if (query.terms.length === 0) return null;
    const { rows } = this.#tree;
    const matches = new Uint8Array(rows).fill(1);
    for (const term of query.terms) {
      if (term.condition.type === "text") continue;
      const test = this.#test(term.condition);
      const wanted = !term.negated;
      for (let row = 0; row < rows; row += 1) if (matches[row] === 1 && test(row) !== wanted) matches[row] = 0;
    }
    this.#runTexts(query.terms, matches);
    return matches;
  }

  get #strings(): string[] {
    this.#lower ??= this.#tree.strings.map((text) => text.toLowerCase());
    return this.#lower;
  }

  /**
   * Every word must be found somewhere on the row's path, and one of them in the row's own name: `mlp` finds the MLPs and not all they
   * hold, `layers.3 down` finds one down_proj.
   */
  #runTexts(terms: readonly Term[], matches: Uint8Array): void {
    const texts = terms.filter((term) => term.condition.type === "text");
    if (texts.length === 0) return;
    const tree = this.#tree;
    const wanted = texts.filter((term) => !term.negated).map((term) => this.#hits(term.condition as Condition & { type: "text" }));
    const unwanted = texts.filter((term) => term.negated).map((term) => this.#hits(term.condition as Condition & { type: "text" }));
    for (let row = 0; row < tree.rows; row += 1) {
      if (matches[row] === 0) continue;
      const name = at(tree.name, row);
      const module = at(tree.module, row);
      const right = at(tree.right_name, row);
      let own = wanted.length === 0;
      let holds = true;
      for (const hits of wanted) {
        const inName = hits[name] === 1 || (right >= 0 && hits[right] === 1);
        // `layers.3.mlp` stands in no single name: it belongs to the first row whose path holds it.
        const above = at(tree.parent, row);
        const onPath = module >= 0 && hits[module] === 1;
        const completes = onPath && (above < 0 || hits[at(tree.module, above)] !== 1);
        if (inName || completes) own = true;
        else if (!onPath) holds = false;
      }
      for (const hits of unwanted) if (hits[name] === 1 || (right >= 0 && hits[right] === 1)) holds = false;
      if (!own || !holds) matches[row] = 0;
    }
  }

  /** Per string: does it hold the word; where no string does, is it what the word abbreviates (`l3dp` → layers.3 … down_proj). */
  #hits({ text, exact }: { text: string; exact: boolean }): Uint8Array {
    const strings = this.#strings;
    const hits = new Uint8Array(strings.length);
    let any = false;
    for (let index = 0; index < strings.length; index += 1) {
      if ((strings[index] as string).includes(text)) {
        hits[index] = 1;
        any = true;
      }
    }
    if (any || exact) return hits;
    for (let index = 0; index < strings.length; index += 1) if (abbreviates(text, strings[index] as string)) hits[index] = 1;
    return hits;
  }

  #test(condition: Exclude<Condition, { type: "text" }>): (row: number) => boolean {
    const tree = this.#tree;
    switch (condition.type) {
      case "grade": {
        const { comparator, grade } = condition;
        if (comparator === "=" || comparator === "!=") {
          const equal = comparator === "=";
          return (row) => (at(tree.grade, row) === grade) === equal;
        }
        return (row) => at(tree.grade, row) <= GRADE.diverged && compare(at(tree.grade, row), comparator, grade);
      }
      case "number": {
        const { comparator, value, field } = condition;
        if (value === "floor") {
          const column = field === "worst" ? tree.worst : tree.difference;
          return (row) => compare(at(column, row), comparator, at(tree.floor, row));
        }
        const column = tree[field];
        if (column === null) return () => false;
        const absent = field === "order";
        return (row) => !(absent && at(column, row) < 0) && compare(at(column, row), comparator, value);
      }
      case "layer":
        return (row) => {
          const layer = at(tree.layer, row);
          return layer >= 0 && condition.ranges.some(([from, to]) => layer >= from && layer <= to);
        };
      case "direction":
        return (row) => at(tree.direction, row) === condition.direction && at(tree.kind, row) !== KIND.section;
      case "kind":
        return (row) => condition.kinds.includes(at(tree.kind, row));
      case "role":
        return (row) => condition.roles.includes(at(tree.role, row));
      case "class": {
        const hits = this.#anyOf(condition.texts);
        return (row) => {
          const left = at(tree.left_class, row);
          const right = at(tree.right_class, row);
          return (left >= 0 && hits[left] === 1) || (right >= 0 && hits[right] === 1);
        };
      }
      case "module": {
        const hits = this.#anyOf(condition.texts);
        return (row) => hits[at(tree.module, row)] === 1;
      }
      case "reason": {
        const wanted = tree.reasons.map((reason) => condition.texts.some((text) => reason.toLowerCase().includes(text)));
        return (row) => wanted[at(tree.reason, row)] === true;
      }
    }
  }

  #anyOf(texts: readonly string[]): Uint8Array {
    const hits = new Uint8Array(this.#strings.length);
    for (const text of texts) {
      const one = this.#hits({ text, exact: true });
      for (let index = 0; index < hits.length; index += 1) hits[index] = (hits[index] as number) | (one[index] as number);
    }
    return hits;
  }
}

/** NaN satisfies nothing. Infinity is a number larger than any other. */
function compare(value: number, comparator: Comparator, limit: number): boolean {
  switch (comparator) {
    case ">":
      return value > limit;
    case ">=":
      return value >= limit;
    case "<":
      return value < limit;
    case "<=":
      return value <= limit;
    case "=":
      return value === limit;
    case "!=":
      return !Number.isNaN(value) && value !== limit;
  }
}

/** Whether `short` abbreviates `full`: its characters in order, each right after the one before it or at the start of a name or number. */
export function abbreviates(short: string, full: string): boolean {
  return abbreviatesFrom(short, 0, full, 0);
}

function abbreviatesFrom(short: string, done: number, full: string, from: number): boolean {
  if (done === short.length) return true;
  const wanted = short[done] as string;
  for (let place = full.indexOf(wanted, from); place !== -1; place = full.indexOf(wanted, place + 1)) {
    const continues = done > 0 && place === from;
    if ((continues || startsName(full, place)) && abbreviatesFrom(short, done + 1, full, place + 1)) return true;
  }
  return false;
}

function startsName(text: string, place: number): boolean {
  if (place === 0) return true;
  const before = text[place - 1] as string;
  if (before === "." || before === "_" || before === "/" || before === " ") return true;
  return isDigit(text[place] as string) && !isDigit(before);
}

function isDigit(character: string): boolean {
  return character >= "0" && character <= "9";
}
