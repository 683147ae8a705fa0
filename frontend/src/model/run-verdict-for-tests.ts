import type { KeyData, RunVerdict } from "../api/run-verdict";
import { runPart, runVerdict } from "./parts-for-tests";

/** Two runs of one RL loop as the server describes them: equal up to step 1, at step 2 a weight of the reference model differs. For tests alone. */

const FIRST = { step: 2, rank: 0, micro_step: 0, id: "0" } as const;
const STAGES = ["actor_generate_sequences", "reference_compute_log_prob", "actor_compute_log_prob", "actor_update"] as const;

export function keyData(n: number, key: string, own: Partial<KeyData> = {}): KeyData {
  const differing = own.state === undefined || own.state === "equal" ? 0 : 2;
  return {
    n,
    key,
    order: n,
    kind: "per_token",
    stage: null,
    state: "equal",
    first: differing === 0 ? null : FIRST,
    tables: 6,
    counts: { equal: 6 - differing, differs: differing, left_only: 0, right_only: 0 },
    copies: 1,
    caused_by: [],
    ...own,
  };
}

export function loopVerdict(own: Partial<RunVerdict> = {}): RunVerdict {
  const parts = [0, 1, 2].flatMap((step) =>
    STAGES.map((stage, at) => {
      const bad = step === 2 && stage === "reference_compute_log_prob";
      return runPart(step * STAGES.length + at, {
        stage,
        step,
        verdict: bad ? "diverged" : "identical",
        first_divergence: bad
          ? {
              module: "model.layers.1.mlp.down_proj",
              left: [],
              right: [],
              slot: "parameters.weight",
              direction: "forward",
              order: 31,
              of: 60,
              stage,
              step,
              rank: 0,
              kind: "weights",
              after: null,
              before: null,
              evidence: { norm_rel: 0.012 },
              confidence: "high",
              causes: [{ code: "weight_sync", score: 0.9, text: { en: "The weight was not synchronised", zh: "权重没有同步" } }],
            }
          : null,
      });
    }),
  );
  return runVerdict(parts, {
    headline: { en: "First difference: ref_log_prob, step 2 — the reference model", zh: "首个差异：ref_log_prob，第 2 步 — 参考模型" },
    first: { key_data: "ref_log_prob", stage: STAGES[1], step: 2, rank: 0, module: "model.layers.1.mlp.down_proj" },
    key_data: [
      keyData(0, "prompts", { kind: "tokens" }),
      keyData(1, "responses", { kind: "tokens", stage: STAGES[0] }),
      keyData(2, "values"),
      keyData(3, "ref_log_prob", { state: "differs", stage: STAGES[1] }),
      keyData(4, "old_log_prob", { stage: STAGES[2] }),
      keyData(5, "advantages", { state: "consequence", caused_by: ["ref_log_prob"] }),
      keyData(6, "log_prob", { stage: STAGES[3] }),
      keyData(7, "kl_loss", { state: "consequence", caused_by: ["ref_log_prob"], kind: "scalar", stage: STAGES[3] }),
      keyData(8, "loss", { state: "consequence", caused_by: ["ref_log_prob", "advantages", "kl_loss"], kind: "scalar", stage: STAGES[3] }),
    ],
    configurations: [
      {
        path: "generate/temperature",
        left: 1,
        right: 0.7,
        matters: true,
        state: "differs",
        why: { en: "Other tokens are drawn", zh: "采样的词元不同" },
      },
      { path: "rl/run", left: "run_a", right: null, matters: false, state: "left_only", why: null },
    ],
    preconditions: [
      {
        code: "remove_padding",
        text: { en: "Padding is removed", zh: "去除填充" },
        wanted: "true",
        left: { state: "ok", path: "actor/use_remove_padding", value: true },
        right: { state: "failed", path: "actor/use_remove_padding", value: false },
      },
    ],
    checks: [
      {
        code: "log_prob_positive",
        side: "right",
        key: "log_prob",
        state: "failed",
        severity: "error",
        tables: 6,
        failed: 1,
        worst: 0.25,
        first: { ...FIRST, step: 1 },
        text: { en: "log_prob is above 0", zh: "log_prob 大于 0" },
      },
      {
        code: "nonfinite",
        side: "left",
        key: "loss",
        state: "ok",
        severity: "info",
        tables: 6,
        failed: 0,
        worst: null,
        first: null,
        text: { en: "loss is finite", zh: "loss 有限" },
      },
    ],
    stage_pairs: [
      {
        left: STAGES[1],
        right: STAGES[1],
        reason: "same_name",
        used: true,
        parts: 3,
        option: `${STAGES[1]}:${STAGES[1]}`,
        text: { en: "the same stage on both sides", zh: "两侧为同一阶段" },
      },
      {
        left: STAGES[2],
        right: STAGES[0],
        reason: "train_infer",
        used: false,
        parts: 3,
        option: `${STAGES[2]}:${STAGES[0]}`,
        text: { en: "train against inference", zh: "训练对推理" },
      },
    ],
    drift: [
      {
        key: "ref_log_prob",
        stage: null,
        steps: [0, 1, 2],
        values: [0, 0, 0.0435],
        measure: "max_abs",
        kind: "late",
        text: { en: "Nothing up to step 1, then something", zh: "第 1 步之前没有" },
      },
    ],
    findings: [
      {
        code: "key_data_reference",
        severity: "error",
        modules: [],
        text: { en: "The reference model computes something else", zh: "参考模型的计算不同" },
        evidence: {},
      },
    ],
    ...own,
  });
}
