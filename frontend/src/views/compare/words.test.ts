import { describe, expect, it } from "vitest";
import { messagesOf } from "../../i18n";
import { node, origin, slot, statistic, verdict } from "./documents-for-tests";
import {
  confidenceFact,
  explainNode,
  inheritedPairs,
  placeName,
  premiseText,
  restsOn,
  sideWord,
  splitPath,
  verdictSentence,
} from "./words";

const en = messagesOf("en").compare;
const zh = messagesOf("zh").compare;
const text = (runs: readonly { text: string }[]) => runs.map((run) => run.text).join("");

describe("names of places", () => {
  it.each([
    ["model.layers.11.mlp.down_proj", "layers.11 · mlp.down_proj"],
    ["model.layers.3", "layers.3"],
    ["model.embed_tokens", "embed_tokens"],
    ["lm_head", "lm_head"],
    ["(root)", "(root)"],
    [
      "model.layers.2.self_attn/Functional.scaled_dot_product_attention.0",
      "layers.2 · self_attn/Functional.scaled_dot_product_attention.0",
    ],
  ])("%s reads %s", (module, expected) => {
    expect(placeName(module)).toBe(expected);
  });

  it("splits a path before its last component, an API call at its slash", () => {
    expect(splitPath("model.layers.1.mlp")).toEqual(["model.layers.1.", "mlp"]);
    expect(splitPath("model.layers.1.mlp/Torch.matmul.0")).toEqual(["model.layers.1.mlp/", "Torch.matmul.0"]);
  });
});

describe("the verdict's sentence", () => {
  it("sets in bold what stands before the headline's dash, in either language", () => {
    expect(verdictSentence(verdict(), "en", en)).toEqual({
      where: "First divergence: layers.11 · mlp.down_proj",
      what: "weights differ (Norm 30 / 29.88, Max 0.07617 / 0.07129)",
      rest: "",
    });
    expect(verdictSentence(verdict(), "zh", zh).where).toBe("首个差异：layers.11 · mlp.down_proj");
  });

  it("moves what follows the first full stop to the second line", () => {
    const consistent = verdict({
      verdict: "consistent",
      first_divergence: null,
      headline: {
        en: "Consistent — the outputs of 24 layers agree, Norm within 0 ulp (0.304 %); nothing beyond noise. Rests on bf16 statistics, not tensors",
        zh: "训推一致 — 24 层的输出一致，没有超出噪声的差异。依据是 bf16 统计量而不是张量",
      },
    });
    expect(verdictSentence(consistent, "en", en)).toEqual({
      where: "Consistent",
      what: "the outputs of 24 layers agree, Norm within 0 ulp (0.304 %); nothing beyond noise",
      rest: "Rests on bf16 statistics, not tensors",
    });
    expect(verdictSentence(consistent, "zh", zh)).toEqual({
      where: "训推一致",
      what: "24 层的输出一致，没有超出噪声的差异",
      rest: "依据是 bf16 统计量而不是张量",
    });
  });

  it("takes a full stop inside a module's name or a number for what it is", () => {
    const sentence = verdictSentence(verdict({ headline: { en: "Not comparable — 12.5 against layers.3.Mlp tokens", zh: "" } }), "en", en);
    expect(sentence.what).toBe("12.5 against layers.3.Mlp tokens");
  });

  it("makes a sentence of its own where the headline is empty", () => {
    const bare = { en: "", zh: "" };
    expect(verdictSentence(verdict({ headline: bare }), "en", en)).toEqual({
      where: "First divergence: layers.11 · mlp.down_proj",
      what: "a weight differs (Norm −2.41\u00a0%, Max +6.02\u00a0%)",
      rest: "",
    });
    const between = origin({ kind: "between", after: "model.layers.0.self_attn.qkv_proj", before: "model.layers.0.self_attn.attn" });
    expect(verdictSentence(verdict({ headline: bare, first_divergence: between }), "zh", zh).what).toBe(
      "分歧发生在没有比较的位置，在 layers.0 · self_attn.qkv_proj 之后、layers.0 · self_attn.attn 之前",
    );
    expect(verdictSentence(verdict({ headline: bare, verdict: "identical", first_divergence: null }), "en", en).what).toBe(
      "all 246 pairs are equal",
    );
  });

  it("counts what later pairs inherit without the origins themselves", () => {
    expect(inheritedPairs(verdict())).toBe(61);
  });
});

describe("premises", () => {
  const of = (code: string) =>
    verdict().premises.find((premise) => premise.code === code) as ReturnType<typeof verdict>["premises"][number];

  it("say their figure in the chip", () => {
    expect(premiseText(of("tokens"), en)).toBe("tokens 190");
    expect(premiseText(of("length"), en)).toBe("length");
    expect(premiseText(of("positions"), en)).toBe("positions: unknown");
    expect(premiseText(of("weights"), en)).toBe("weights: 1 of 170 differs");
    expect(premiseText(of("weights"), zh)).toBe("权重：170 个中 1 个不同");
    // By hand: the inference side has fewer records, 239 of 246 = 97.15 %.
    expect(premiseText(of("overlap"), en)).toBe("overlap 97 %");
  });

  it("say both lengths where the length failed", () => {
    expect(premiseText({ code: "length", state: "failed", detail: { left: 12, right: 10 } }, en)).toBe("length: 12 / 10");
  });

  it("survive a detail that holds nothing they know", () => {
    for (const premise of verdict().premises) expect(premiseText({ ...premise, detail: {} }, en)).not.toMatch(/undefined|NaN|null/);
  });

  it("give the fact behind the confidence: the other weights, else the likeliest cause", () => {
    expect(confidenceFact(verdict(), "en", en)).toBe("the statistics of 169 of 170 weights agree");
    expect(confidenceFact(verdict({ first_divergence: origin({ kind: "origin" }) }), "zh", zh)).toBe("可能原因：该权重没有同步到推理引擎");
  });

  it("say that statistics prove less than tensors", () => {
    expect(restsOn(verdict(), en)).toContain("not on tensors");
    const tensors = { ...verdict().left, task: "tensor" };
    expect(restsOn(verdict({ left: tensors, right: tensors }), en)).toBe("Rests on the tensors themselves.");
  });
});

describe("what happened at a row", () => {
  it("an origin in a weight: input agrees, weight does not, output follows, cause with its score", () => {
    const slots = [
      slot({
        group: "input",
        slot: "input.0",
        statistics: [statistic("norm"), statistic("max", { ulps: 1 }), statistic("min", { ulps: -0.4 })],
      }),
      slot({ group: "parameters", slot: "parameters.weight", state: "first" }),
      slot({ state: "differs" }),
    ];
    expect(text(explainNode(node({ slots }), origin(), "en", en))).toBe(
      "The input agrees (≤ 1 ulp). The weight does not, and the output follows it. Likely cause: this weight was not synchronised to the engine (0.86); or it was changed after loading (0.11).",
    );
    expect(text(explainNode(node({ slots }), origin(), "zh", zh))).toBe(
      "输入一致（≤ 1 ulp）。权重不同，输出随之不同。可能原因：该权重没有同步到推理引擎（0.86）；或加载之后被修改（0.11）。",
    );
  });

  it("an origin whose input and weight were not compared says so, and not that they agree", () => {
    const slots = [
      slot({ group: "input", slot: "input.0", state: "not_comparable", grade: "incomparable", statistics: [] }),
      slot({ group: "parameters", slot: "parameters.weight", state: "not_comparable", grade: "incomparable", statistics: [] }),
      slot({ state: "first" }),
    ];
    const own = origin({ kind: "origin", inputs: "not_compared", causes: [] });
    expect(text(explainNode(node({ slots }), own, "en", en))).toBe("The inputs were not compared. The output differs.");
    expect(text(explainNode(node({ slots }), own, "zh", zh))).toBe("输入没有比较。输出不同。");
    const weights = [...slots.slice(0, 1), slot({ group: "parameters", slot: "parameters.weight" }), ...slots.slice(2)];
    expect(text(explainNode(node({ slots: weights }), own, "en", en))).toBe(
      "The inputs were not compared. The weights agree, the output does not.",
    );
  });

  it.each([
    [
      "inherited",
      { difference: 0.0341 },
      "Its input differs already, and so does the output: 3.41\u00a0%, over a noise floor of 1.70\u00a0%.",
    ],
    ["amplified", { difference: 0.0712, growth: 2.1 }, "It makes an inherited difference larger: ×2.1, to 7.12\u00a0%."],
    ["inherited", { difference: "Infinity" }, "Its input is NaN or Inf on one side already, and so is the output."],
    ["none", { grade: "equal", difference: 0 }, "Both sides are equal as far as the data can tell."],
    ["none", { grade: "no_pair", difference: null }, "Nothing was dumped for this row itself; it holds the rows below."],
  ] as const)("%s %j", (role, own, expected) => {
    expect(text(explainNode(node({ role, ...own }), null, "en", en))).toBe(expected);
  });

  it("gives the engine's own reason where there is one, as a sentence", () => {
    const explanation = { code: "wrapper", text: { en: "a wrapper around the model", zh: "模型外层的包装" } };
    expect(text(explainNode(node({ explanation }), null, "en", en))).toBe("A wrapper around the model.");
    expect(text(explainNode(node({ explanation }), null, "zh", zh))).toBe("模型外层的包装。");
  });
});

describe("sides", () => {
  it("are called by their role, and by their place where both have the same", () => {
    expect(sideWord({ role: "train" }, { role: "infer" }, "left", en)).toBe("train");
    expect(sideWord({ role: "train" }, { role: "train" }, "right", en)).toBe("right");
  });
});
