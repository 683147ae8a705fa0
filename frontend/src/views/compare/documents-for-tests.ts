import type { NodeDetail, NodeSlot, Origin, PartVerdict, SlotStatistic } from "../../api/types";

/** Documents as the server writes them, for tests alone; a test overrides what it is about. */

export function origin(own: Partial<Origin> = {}): Origin {
  return {
    module: "model.layers.11.mlp.down_proj",
    left: ["Module._fsdp_wrapped_module.model.layers.11.mlp.down_proj.Linear.forward.0"],
    right: ["Module.model.layers.11.mlp.down_proj.RowParallelLinear.forward.0"],
    slot: "output.0",
    direction: "forward",
    order: 142,
    of: 246,
    stage: null,
    step: 0,
    rank: 0,
    kind: "weights",
    after: null,
    before: null,
    evidence: { norm_rel: -0.0241, max_rel: 0.0602, mean_over_rms: 0.0008, ulps: 8, cosine: null, rel_l2: null },
    confidence: "high",
    causes: [
      {
        code: "not_synchronised",
        score: 0.86,
        text: { en: "this weight was not synchronised to the engine", zh: "该权重没有同步到推理引擎" },
      },
      { code: "changed", score: 0.11, text: { en: "it was changed after loading", zh: "加载之后被修改" } },
    ],
    ...own,
  };
}

export function verdict(own: Partial<PartVerdict> = {}): PartVerdict {
  const side = { framework: "pytorch", task: "statistics", level: "L0", step: 0, ranks: [0], records: 340 } as const;
  const first = own.first_divergence === undefined ? origin() : own.first_divergence;
  return {
    schema: "probe-web/verdict/1",
    left: { ...side, name: "fsdp-1130", role: "train" },
    right: { ...side, name: "rollout-1130", role: "infer" },
    verdict: "diverged",
    headline: {
      en: "First divergence: layers.11 · mlp.down_proj — weights differ (Norm 30 / 29.88, Max 0.07617 / 0.07129)",
      zh: "首个差异：layers.11 · mlp.down_proj — 权重不同（Norm 30 / 29.88，Max 0.07617 / 0.07129）",
    },
    premises: [
      { code: "tokens", state: "ok", detail: { count: [190, 190] } },
      { code: "length", state: "ok", detail: { left: 190, right: 190 } },
      { code: "positions", state: "unknown", detail: {} },
      { code: "weights", state: "failed", detail: { compared: 170, differing: 1, modules: ["model.layers.11.mlp.down_proj"] } },
      { code: "overlap", state: "ok", detail: { matched: [330, 239], records: [340, 246] } },
    ],
    first_difference: null,
    first_divergence: first,
    origins: first === null ? [] : [first],
    coverage: { left: { records: 340, matched: 330, explained: 340 }, right: { records: 246, matched: 239, explained: 246 } },
    layers: [],
    findings: [],
    counts: { pairs: 246, equal: 100, rounding: 50, noise: 34, diverged: 62, incomparable: 0, unmatched_left: 10, unmatched_right: 7 },
    timing: {},
    ...own,
  } as PartVerdict;
}

export function statistic(name: SlotStatistic["name"], own: Partial<SlotStatistic> = {}): SlotStatistic {
  return { name, left: 1, right: 1, difference: 0, relative: 0, of: "norm", ulps: 0, over: false, ...own };
}

export function slot(own: Partial<NodeSlot> = {}): NodeSlot {
  const place = (record: string) => [{ record, slot: "output.0", dtype: "torch.bfloat16", shape: [190, 896] }];
  return {
    group: "output",
    slot: "output.0",
    left: place("left"),
    right: place("right"),
    relation: "same",
    reason: { code: "same_slot", text: { en: "The same slot of the same module", zh: "同一模块的同一位置" } },
    elsewhere: false,
    state: "agrees",
    grade: "rounding",
    order: 1,
    floor: 0.008,
    floor_source: "measured",
    precision: "bf16",
    statistics: [],
    tensor: null,
    ...own,
  };
}

export function node(own: Partial<NodeDetail> = {}): NodeDetail {
  return {
    n: 12,
    module: "model.layers.11.mlp.down_proj",
    kind: "module",
    direction: "forward",
    call: 0,
    layer: 11,
    left: [{ name: "left", class: "Linear" }],
    right: [{ name: "right", class: "RowParallelLinear" }],
    relation: "same",
    confidence: "high",
    role: "origin",
    grade: "diverged",
    difference: 0.0602,
    floor: 0.017,
    growth: 10,
    order: 142,
    of: 246,
    explanation: null,
    slots: [],
    stacks: { left: [], right: [] },
    ...own,
  };
}
