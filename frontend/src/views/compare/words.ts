import type { GradeWord, NodeDetail, NodeSlot, Num, Origin, PartVerdict, Premise, SideSummary } from "../../api/types";
import type { CompareMessages } from "../../i18n";
import { factor, figure, percent, signedPercent } from "../../i18n/format";
import type { Language } from "../../ui/preferences";

/** Sentences of the workbench, from the documents alone: no React, no tree. */

/** `model.layers.11.mlp.down_proj` → `layers.11 · mlp.down_proj`, as a person says it. An API call keeps its slash. */
export function placeName(module: string): string {
  const layered = /^(?:.*?\.)?(layers\.\d+|h\.\d+|blocks?\.\d+)(?:[.](.+))?$/.exec(module);
  if (layered === null) return module.replace(/^model\./, "");
  return layered[2] === undefined ? (layered[1] as string) : `${layered[1]} · ${layered[2]}`;
}

/** Last component of a path, and what stands before it. */
export function splitPath(module: string): readonly [string, string] {
  const slash = module.lastIndexOf("/");
  const cut = slash >= 0 ? slash : module.lastIndexOf(".");
  return [module.slice(0, cut + 1), module.slice(cut + 1)];
}

export function sideWord(
  side: SideSummary | { role: string },
  other: { role: string },
  which: "left" | "right",
  t: CompareMessages,
): string {
  // Two runs of one role are told apart by where they stand.
  if (side.role === other.role) return t.sides[which];
  return side.role === "train" ? t.sides.train : side.role === "infer" ? t.sides.infer : t.sides[which];
}

export function dtypeName(dtype: string | null | undefined): string {
  if (dtype === null || dtype === undefined) return "";
  const plain = dtype.replace(/^torch\./, "");
  return { bfloat16: "bf16", float16: "fp16", float32: "fp32", float64: "fp64" }[plain] ?? plain;
}

export interface Sentence {
  /** Set in bold: where. */
  readonly where: string;
  /** Regular, after a dash: what, with the number. */
  readonly what: string;
  /** What the headline says after its first sentence; empty where it is one sentence. */
  readonly rest: string;
}

/**
 * The verdict's sentence. The engine's headline is the one truth in words: its dash tells "where" from "what", and what follows its first full
 * stop belongs to the second line. A headline that says nothing is made up for from the document.
 */
export function verdictSentence(verdict: PartVerdict, language: Language, t: CompareMessages): Sentence {
  const [headline, rest] = firstSentence(verdict.headline[language].trim());
  const dash = /\s*(?: — |——|—| – )\s*/.exec(headline);
  if (dash !== null && dash.index > 0 && dash.index < 90) {
    return { where: headline.slice(0, dash.index), what: withoutStop(headline.slice(dash.index + dash[0].length)), rest };
  }
  if (verdict.verdict === "diverged" && verdict.first_divergence !== null) {
    const origin = verdict.first_divergence;
    return { where: t.verdict.first(placeName(origin.module)), what: originWhat(origin, t), rest: "" };
  }
  if (headline !== "") return { where: withoutStop(headline), what: "", rest };
  const pairs = String(verdict.counts.pairs);
  switch (verdict.verdict) {
    case "consistent":
      return { where: t.verdict.consistent, what: t.verdict.consistentWhat(pairs), rest };
    case "identical":
      return { where: t.verdict.identical, what: t.verdict.identicalWhat(pairs), rest };
    case "not_comparable":
      return { where: t.verdict.notComparable, what: t.verdict.notComparableWhat, rest };
    default:
      return { where: t.verdict.diverged, what: "", rest };
  }
}

function firstSentence(text: string): readonly [string, string] {
  const stop = /\. (?=\p{Lu})|。(?=.)/u.exec(text);
  return stop === null ? [text, ""] : [text.slice(0, stop.index), text.slice(stop.index + stop[0].length)];
}

function withoutStop(text: string): string {
  return text.replace(/[.。]$/, "");
}

/** What an origin is and the number that proves it: `a weight differs (Norm −2.41 %, Max +6.02 %)`. */
export function originWhat(origin: Origin, t: CompareMessages): string {
  const kind =
    origin.inputs === "not_compared"
      ? t.verdict.inputsNotCompared
      : origin.inputs === "some_not_compared"
        ? t.verdict.inputsPartlyCompared
        : t.verdict.kinds[origin.kind];
  if (origin.kind === "between" && origin.after !== null && origin.before !== null) {
    return `${kind}${t.verdict.betweenPlaces(placeName(origin.after), placeName(origin.before))}`;
  }
  const numbers = evidenceNumbers(origin.evidence);
  return numbers === "" ? kind : `${kind} ${t.verdict.numbers(numbers)}`.replace(" （", "（");
}

export function evidenceNumbers(evidence: Origin["evidence"]): string {
  const parts: string[] = [];
  const add = (name: string, value: Num | null | undefined) => {
    const plain = figure(value);
    if (plain !== null && plain !== 0 && !Number.isNaN(plain)) parts.push(`${name} ${signedPercent(value)}`);
  };
  add("Norm", evidence.norm_rel);
  add("Max", evidence.max_rel);
  return parts.join(", ");
}

/** The largest relative difference that an origin's evidence names; null where it names none. */
export function evidenceSize(origin: Origin): number | null {
  const sizes = [origin.evidence.norm_rel, origin.evidence.max_rel, origin.evidence.mean_over_rms]
    .map(figure)
    .filter((size): size is number => size !== null && !Number.isNaN(size))
    .map(Math.abs);
  return sizes.length === 0 ? null : Math.max(...sizes);
}

/** How many pairs after the origins differ because of them. */
export function inheritedPairs(verdict: PartVerdict): number {
  return Math.max(0, verdict.counts.diverged - verdict.origins.length);
}

function count(detail: Premise["detail"], name: string): number | null {
  const value = detail[name];
  return typeof value === "number" ? value : null;
}

/** A member that holds one number a side. */
function eachSide(detail: Premise["detail"], name: string): readonly [number, number] | null {
  const value = detail[name];
  return Array.isArray(value) && typeof value[0] === "number" && typeof value[1] === "number" ? [value[0], value[1]] : null;
}

/** The text of a premise's chip: `tokens 190`, `weights: 1 of 170 differs`, `overlap 97 %`. */
export function premiseText(premise: Premise, t: CompareMessages): string {
  const { code, state, detail } = premise;
  const name = t.premises.names[code];
  if (state === "unknown") return t.premises.unknown(name);
  if (code === "weights") {
    const differ = count(detail, "differing");
    const all = count(detail, "compared");
    if (state === "failed") {
      return differ === null || all === null
        ? t.premises.weightsFailedPlain
        : t.premises.weightsFailed(differ, String(differ), String(all));
    }
    return all === null ? name : `${name} ${all}`;
  }
  if (code === "length" && state === "failed") {
    const [left, right] = [count(detail, "left"), count(detail, "right")];
    return left === null || right === null ? t.premises.failed.length : t.premises.lengthFailed(String(left), String(right));
  }
  if (state === "failed") return t.premises.failed[code];
  if (code === "tokens") {
    const tokens = eachSide(detail, "count");
    return tokens === null ? name : `${name} ${tokens[0]}`;
  }
  if (code === "overlap") {
    const share = overlapShare(detail);
    return share === null ? name : `${name} ${Math.floor(share * 100)} %`;
  }
  return name;
}

/** Matched forward records of the side that has fewer of them. */
function overlapShare(detail: Premise["detail"]): number | null {
  const matched = eachSide(detail, "matched");
  const records = eachSide(detail, "records");
  if (matched === null || records === null) return null;
  const smaller = records[0] <= records[1] ? 0 : 1;
  return records[smaller] > 0 ? matched[smaller] / records[smaller] : null;
}

/** The one fact behind the confidence: for a weight, how many others are equal; else the likeliest cause. */
export function confidenceFact(verdict: PartVerdict, language: Language, t: CompareMessages): string | null {
  const origin = verdict.first_divergence;
  if (origin === null) return null;
  if (origin.kind === "weights") {
    const premise = verdict.premises.find(({ code }) => code === "weights");
    const differ = premise === undefined ? null : count(premise.detail, "differing");
    const all = premise === undefined ? null : count(premise.detail, "compared");
    if (differ !== null && all !== null) {
      const tensors = verdict.left.task === "tensor" && verdict.right.task === "tensor";
      return (tensors ? t.verdict.weightsFactTensors : t.verdict.weightsFact)(String(all - differ), String(all));
    }
  }
  const cause = origin.causes[0];
  return cause === undefined ? null : t.verdict.likely(cause.text[language]);
}

/** What a verdict without an origin rests on. */
export function restsOn(verdict: PartVerdict, t: CompareMessages): string {
  if (verdict.left.task === "tensor" && verdict.right.task === "tensor") return t.verdict.restsTensors;
  const dtype = dtypeName(verdict.left.dtype);
  return t.verdict.restsStatistics(dtype === "" ? "" : `${dtype} `);
}

/** A run of text in a paragraph; `strong` is set in bold. */
export interface Run {
  readonly text: string;
  readonly strong?: boolean;
}

/** What happened at a row, in a sentence or three. */
export function explainNode(node: NodeDetail, origin: Origin | null, language: Language, t: CompareMessages): Run[] {
  if (node.explanation !== null) return [{ text: sentence(node.explanation.text[language], language) }];
  if (origin !== null) return explainOrigin(node, origin, language, t);
  if (node.difference === "Infinity" || node.difference === "NaN") return [{ text: t.explain.inheritedNonfinite }];
  const difference = percent(node.difference);
  const floor = percent(node.floor);
  switch (node.role) {
    case "inherited":
      return [{ text: t.explain.inherited(difference, floor) }];
    case "amplified":
      return [{ text: t.explain.amplified(difference, factor(node.growth)) }];
    case "healed":
      return [{ text: t.explain.healed(difference, floor) }];
    default:
      break;
  }
  if (node.difference === null) return [{ text: node.grade === "no_pair" ? t.explain.container : t.explain.within("–", floor) }];
  if (node.grade === "equal") return [{ text: t.explain.equal }];
  if (node.grade === "rounding") return [{ text: t.explain.rounding(difference) }];
  if (node.grade === "diverged") return [{ text: t.explain.inherited(difference, floor) }];
  return [{ text: t.explain.within(difference, floor) }];
}

/** As a heading or a sentence begins. */
export function capitalised(text: string): string {
  return `${text.slice(0, 1).toUpperCase()}${text.slice(1)}`;
}

/** A phrase as a sentence of its own. */
function sentence(text: string, language: Language): string {
  const stop = language === "zh" ? "。" : ".";
  return `${capitalised(text)}${/[.。]$/.test(text) ? "" : stop}`;
}

function explainOrigin(node: NodeDetail, origin: Origin, language: Language, t: CompareMessages): Run[] {
  const sentences: string[] = [];
  if (origin.kind === "between") {
    if (origin.after !== null && origin.before !== null)
      sentences.push(t.explain.between(placeName(origin.after), placeName(origin.before)));
  } else {
    const inputs = node.slots.filter((slot) => slot.group === "input" && slot.state === "agrees");
    const agree = inputs.length > 0 && origin.inputs !== "not_compared";
    // Not of the mean: it is a sum that cancels, and near zero its own step says nothing.
    const steps = inputs
      .flatMap((slot) => slot.statistics.filter((statistic) => statistic.name !== "mean").map((statistic) => figure(statistic.ulps)))
      .filter((step) => step !== null);
    if (!agree) {
      if (origin.inputs === "not_compared") sentences.push(t.explain.inputsNotCompared);
    } else {
      sentences.push(
        steps.length > 0 ? t.explain.inputsAgree(String(Math.round(Math.max(...steps.map(Math.abs))))) : t.explain.inputsAgreePlain,
      );
    }
    if (origin.kind === "weights") {
      const moved = node.slots.some((slot) => slot.group === "output" && isDirty(slot));
      if (agree) sentences.push(moved ? t.explain.weightDiffers : t.explain.weightDiffersOnly);
      else sentences.push(moved ? t.explain.weightDiffersAlone : t.explain.weightDiffersOnlyAlone);
    } else if (origin.kind === "nonfinite") sentences.push(t.explain.nonfinite);
    else {
      // Of weights that were not compared nothing is known.
      const weights = node.slots.filter((slot) => slot.group === "parameters");
      if (weights.length > 0 && weights.every((slot) => slot.state === "agrees"))
        sentences.push(agree ? t.explain.weightAgrees : t.explain.weightAgreesAlone);
      else sentences.push(agree ? t.explain.outputDiffers : t.explain.outputDiffersAlone);
    }
  }
  const space = language === "zh" ? "" : " ";
  const runs: Run[] = [{ text: sentences.join(space) }];
  const causes = origin.causes.slice(0, 2);
  causes.forEach((cause, index) => {
    const text = withoutStop(cause.text[language]);
    runs.push({ text: index === 0 ? `${space}${t.explain.likely}` : t.explain.or });
    runs.push({ text, strong: index === 0 });
    if (cause.score > 0) runs.push({ text: t.explain.score(cause.score.toFixed(2)) });
  });
  if (causes.length > 0) runs.push({ text: language === "zh" ? "。" : "." });
  return runs;
}

export function isDirty(slot: NodeSlot): boolean {
  return slot.state === "differs" || slot.state === "first";
}

export function gradeWord(grade: GradeWord | "no_pair", t: CompareMessages): string {
  return t.grades[grade];
}
