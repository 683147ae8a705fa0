import type { NodeDetail } from "../../api/types";

/** A rule made by hand, as a mapping file says it. */
export interface HandRule {
  readonly pair: boolean;
  readonly left: readonly string[];
  readonly right: readonly string[];
  readonly descendants: boolean;
}

const MODULE = /^(?:Module|Cell)\..*\.(?:forward|backward)\.\d+$/;

/** What a side calls the modules of a row: its records' names; of a container, which has none, the canonical path. */
export function namesOf(node: NodeDetail, side: "left" | "right"): string[] {
  const names = node[side].map(({ name }) => name).filter((name) => MODULE.test(name));
  const forward = names.filter((name) => name.includes(".forward."));
  const found = forward.length > 0 ? forward : names;
  if (found.length > 0) return firstCalls(found);
  return node.left.length + node.right.length === 0 && node.module !== null ? [node.module] : [];
}

/** Several ranks or calls of one module are one name. */
function firstCalls(names: readonly string[]): string[] {
  const byPath = new Map<string, string>();
  for (const name of names) {
    const path = name.replace(/\.\d+$/, "");
    if (!byPath.has(path)) byPath.set(path, name);
  }
  return [...byPath.values()];
}

/** The mapping of the comparison before, with one rule more. Whatever form it had stays: files may follow one another. */
export function withRule(mapping: string | undefined, rule: HandRule): string {
  const sides = (["left", "right"] as const)
    .filter((side) => rule[side].length > 0)
    .map((side) => `${side}: [${rule[side].map((name) => JSON.stringify(name)).join(", ")}]`);
  const line = `- {${[...sides, ...(rule.descendants ? ["descendants: true"] : [])].join(", ")}}`;
  const own = `${rule.pair ? "pairs" : "unpaired"}:\n${line}\n`;
  return mapping === undefined || mapping.trim() === "" ? own : `${mapping.trimEnd()}\n---\n${own}`;
}
