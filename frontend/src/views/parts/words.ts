import type { Comparison, Origin, RunPart, RunVerdict } from "../../api/types";
import type { Messages } from "../../i18n";
import { splitHeadline } from "../../ui/headline";
import type { Language } from "../../ui/preferences";
import { originWhat, placeName } from "../compare/words";
import { firstPart } from "./matrix";

/** Sentences about the parts of a run verdict, from the document alone. */

/** The step, or both where the two sides' differ. */
export function stepText(part: RunPart, t: Messages): string {
  const { left, right } = part;
  if (left !== null && right !== null && left.step !== right.step) return t.parts.pair(`${left.step ?? "–"}`, `${right.step ?? "–"}`);
  return part.step === null ? "–" : `${part.step}`;
}

export function stageText(part: RunPart, t: Messages): string {
  const { left, right } = part;
  if (left !== null && right !== null && left.stage !== right.stage) return t.parts.pair(left.stage ?? "–", right.stage ?? "–");
  return part.stage ?? "–";
}

/** `step 2 · reference_compute_log_prob`: what a part is called. */
export function partName(part: RunPart, t: Messages): string {
  const step = part.step === null ? t.parts.noStep : t.parts.step(stepText(part, t));
  const stage = stageText(part, t);
  return stage === "–" ? step : `${step} · ${stage}`;
}

/** Of the numbers the Norm alone: `max_rel` is the worse of Max and Min, and only the part itself says which. */
function divergenceWhat(origin: Origin, t: Messages): string {
  return originWhat({ ...origin, evidence: { norm_rel: origin.evidence.norm_rel ?? null } }, t.compare);
}

/** Where the part parts first and what it is, or why it has no such place. */
export function partReason(part: RunPart, names: Record<"left" | "right", string>, t: Messages): { where: string; what: string } {
  const origin = part.first_divergence;
  if (origin !== null) return { where: placeName(origin.module), what: divergenceWhat(origin, t) };
  const difference = part.first_difference;
  switch (part.verdict) {
    case "diverged":
      return { where: difference === null ? "" : placeName(difference.module), what: "" };
    case "identical":
      return { where: "", what: t.parts.identicalReason };
    case "consistent": {
      if (difference === null) return { where: "", what: t.parts.quietReason };
      return { where: "", what: t.parts.firstDifference(placeName(difference.module), t.compare.grades[difference.grade]) };
    }
    case "not_comparable":
      return { where: "", what: t.parts.notComparableReason };
    case "left_only":
      return { where: "", what: t.parts.onlyReason(names.left) };
    case "right_only":
      return { where: "", what: t.parts.onlyReason(names.right) };
  }
}

/** What a cell is called: its part, its verdict, and the module or the reason. */
export function cellName(part: RunPart, first: boolean, names: Record<"left" | "right", string>, t: Messages): string {
  const { where, what } = partReason(part, names, t);
  const verdict = first ? t.parts.first : t.parts.verdicts[part.verdict];
  return [partName(part, t), verdict, where === "" ? what.replace(/[.。]$/, "") : where].filter(Boolean).join(t.common.comma);
}

/** The verdict's sentence: in bold where, after it what; the first divergence says what in its part. */
export function runSentence(verdict: RunVerdict, language: Language, t: Messages): { where: string; what: string } {
  const [where, what] = splitHeadline(verdict.headline[language]);
  if (where !== "") return { where, what: what.replace(/^ — /, "") };
  const origin = firstPart(verdict)?.first_divergence ?? null;
  return { where: what, what: origin === null ? "" : divergenceWhat(origin, t) };
}

/** `2 of 12 parts diverge · 10 identical` */
export function countsLine(parts: readonly RunPart[], t: Messages, format: (count: number) => string): string {
  const count = (...words: readonly string[]) => parts.filter(({ verdict }) => words.includes(verdict)).length;
  const { diverged, ...others } = t.parts.counts;
  const bad = count("diverged");
  const line = [bad > 0 ? diverged(bad, format(bad), format(parts.length)) : t.parts.count(parts.length, format(parts.length))];
  for (const word of ["consistent", "identical", "not_comparable"] as const) {
    const found = count(word);
    if (found > 0) line.push(others[word](found, format(found)));
  }
  const only = count("left_only", "right_only");
  if (only > 0) line.push(others.only(only, format(only)));
  return line.join(" · ");
}

export function sideNames({ left, right }: Pick<Comparison, "left" | "right">): Record<"left" | "right", string> {
  return { left: left.name, right: right.name };
}
