import type { Comparison, RunPart, RunVerdict } from "../api/types";

/** Documents as the server writes them, for tests alone. */

export function runPart(n: number, own: Partial<RunPart> = {}): RunPart {
  const { stage = null, step = 0, verdict = "identical" } = own;
  const key = { stage, step };
  return {
    n,
    left: verdict === "right_only" ? null : key,
    right: verdict === "left_only" ? null : key,
    stage,
    step,
    ranks: verdict === "left_only" || verdict === "right_only" ? [] : [0],
    verdict,
    first_difference: null,
    first_divergence: null,
    ...own,
  };
}

export function runVerdict(parts: readonly RunPart[], own: Partial<RunVerdict> = {}): RunVerdict {
  return {
    schema: "probe-web/run-verdict/1",
    left: {},
    right: {},
    verdict: "diverged",
    headline: {
      en: "First divergence: reference, step 2, layers.11 · mlp.down_proj",
      zh: "首个差异：reference，第 2 步，layers.11 · mlp.down_proj",
    },
    configurations: [],
    key_data: [],
    parts,
    first: { key_data: null, stage: "reference", step: 2, rank: 0, module: "model.layers.11.mlp.down_proj" },
    timing: {},
    ...own,
  };
}

export function runComparison(verdict: RunVerdict): Comparison {
  const side = { role: "train", state: "ready", progress: {}, error: null, inventory: null } as const;
  return {
    id: "abc",
    url: "/c/abc",
    name: "two runs",
    tags: [],
    state: "done",
    progress: {},
    error: null,
    headline: verdict.headline,
    first_module: "",
    example: "",
    created_at: "",
    updated_at: "",
    finished_at: null,
    left: { ...side, id: "l", name: "run-a" },
    right: { ...side, id: "r", name: "run-b" },
    options: {},
    cancel_requested_at: null,
    previous: null,
    parts: [],
    loop: null,
    read_only: false,
    verdict,
  };
}
