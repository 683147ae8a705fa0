import { QueryClient, QueryClientProvider } from "@tanstack/react-query";
import { act, cleanup, fireEvent, render, screen, waitFor, within } from "@testing-library/react";
import { afterEach, beforeEach, describe, expect, it, vi } from "vitest";
import type { RunFirst } from "../../api/run-verdict";
import type { Comparison, RunVerdict } from "../../api/types";
import { runComparison, runPart, runVerdict } from "../../model/parts-for-tests";
import { keyData, loopVerdict } from "../../model/run-verdict-for-tests";
import { setLanguage } from "../../ui/preferences";
import { changeView } from "../../use-view-state";
import { PartsPage } from "./PartsPage";

/** The page over a network that records what it is asked. */
function setup(verdict: RunVerdict = loopVerdict(), own: Partial<Comparison> = {}) {
  const asked: { method: string; path: string; body: unknown }[] = [];
  vi.spyOn(window, "fetch").mockImplementation(async (request) => {
    const { method, url } = request as Request;
    const text = await (request as Request).clone().text();
    asked.push({ method, path: new URL(url).pathname, body: text === "" ? null : JSON.parse(text) });
    if (url.includes("/key-data/"))
      return Response.json({ format: 1, n: 3, key: "ref_log_prob", kind: "per_token", state: "differs", tables: [] });
    return Response.json({ id: "new", url: "/c/new", state: "queued" }, { status: method === "POST" ? 201 : 200 });
  });
  render(
    <QueryClientProvider client={new QueryClient({ defaultOptions: { queries: { retry: false } } })}>
      <PartsPage comparison={{ ...runComparison(verdict), ...own }} verdict={verdict} slug="abc" from={null} />
    </QueryClientProvider>,
  );
  return { asked };
}

describe("the page of an RL run", () => {
  beforeEach(() => {
    window.history.replaceState(null, "", "/c/abc");
    window.dispatchEvent(new HashChangeEvent("hashchange"));
  });

  afterEach(() => {
    cleanup();
    setLanguage("en");
  });

  it("says of each key in pipeline order whether it is equal, and marks the first that differs", () => {
    setup();
    const strip = within(screen.getByRole("region", { name: "Key data" }));
    expect(strip.getAllByRole("button").map((button) => [...button.children].map(({ textContent }) => textContent))).toEqual([
      ["prompts", "equal", "6 of 6 tables"],
      ["responses", "equal", "6 of 6 tables"],
      ["values", "equal", "6 of 6 tables"],
      ["ref_log_prob", "differs, 2 of 6", "step 2 · rank 0", "the first that differs, first: step 2 · rank 0 · micro step 0"],
      ["old_log_prob", "equal", "6 of 6 tables"],
      ["advantages", "consequence", "from ref_log_prob", "2 of 6 tables differ, first: step 2 · rank 0 · micro step 0"],
      ["log_prob", "equal", "6 of 6 tables"],
      ["kl_loss", "consequence", "from ref_log_prob", "2 of 6 tables differ, first: step 2 · rank 0 · micro step 0"],
      ["loss", "consequence", "from kl_loss", "2 of 6 tables differ, first: step 2 · rank 0 · micro step 0"],
    ]);
    expect(strip.getByText("before step 2: all 9 equal")).toBeTruthy();
    expect(strip.getByRole("button", { pressed: true }).dataset.key).toBe("ref_log_prob");
  });

  it("leads from the setting over the table and its stage to the module and the cause", () => {
    setup();
    const chain = within(screen.getByRole("region", { name: "From the table to the module" }));
    expect(chain.getAllByRole("listitem").map((item) => item.textContent)).toEqual([
      "11 setting that matters differsgenerate/temperature",
      "2ref_log_prob is the first table that differsstep 2 · rank 0 · micro step 0",
      "3made by reference_compute_log_probstep 2 · rank 0",
      "4inside it, layers.1 · mlp.down_proj parts firsta weight differs (Norm +1.20\u00a0%)",
      "The reference model computes something else",
    ]);
    expect(chain.getByText("Likely cause: The weight was not synchronised (0.90)")).toBeTruthy();
    fireEvent.click(chain.getByRole("button", { name: "layers.1 · mlp.down_proj" }));
    expect(window.location.hash).toBe("#v=1&p=9");
  });

  it("opens the tree of the only part with one key, also where nothing diverges", () => {
    setup(runVerdict([runPart(0, { verdict: "identical" })], { key_data: [keyData(0, "loss")] }));
    fireEvent.click(screen.getByRole("button", { name: /Open the tree/ }));
    expect(window.location.hash).toBe("#v=1&p=0");
  });

  it("names the stage that makes a table as one that agrees where nothing inside it differs", () => {
    const agreeing = loopVerdict();
    setup({ ...agreeing, first: { ...(agreeing.first as RunFirst), module: null }, first_part: null, first_origin: null });
    const chain = within(screen.getByRole("region", { name: "From the table to the module" }));
    expect(chain.getByText(/made by/).textContent).toBe("made by reference_compute_log_prob, which agrees");
    expect(chain.queryByText(/Likely cause/)).toBeNull();
    expect(screen.queryByRole("button", { name: /Open the first divergence/ })).toBeNull();
  });

  it("says what the answer rests on, and what does not hold", () => {
    const failed = {
      code: "preconditions_failed",
      severity: "warning",
      modules: [],
      text: { en: "not so", zh: "不满足" },
      evidence: {},
    } as const;
    setup(loopVerdict({ findings: [failed] }));
    const premises = within(screen.getByRole("list", { name: "Premises" })).getAllByRole("listitem");
    expect(premises.map(({ textContent }) => textContent)).toEqual([
      "prompts, holds",
      "responses, holds",
      "same stages, steps, holds",
      "1 setting that matters, fails",
      "1 precondition fails, fails",
      "1 self-check fails, fails",
      "Premises 3/6",
    ]);
  });

  it("does not hold against two equal loops what would part training from inference", () => {
    setup();
    const premises = within(screen.getByRole("list", { name: "Premises" })).getAllByRole("listitem");
    expect(premises.map(({ textContent }) => textContent)).not.toContain("1 precondition fails, fails");
    expect(screen.getByRole("region", { name: "What comparing training with inference needs" })).toBeTruthy();
  });

  it("shows equations with the numbers put in, and why one cannot be computed, in both languages", () => {
    const text = { en: "Batches", zh: "批" };
    const wanted = "train_batch_size / ppo_mini_batch_size = 1";
    const known = {
      state: "failed",
      path: "data/train_batch_size",
      value: 4,
      text: {
        en: "train_batch_size 256 / ppo_mini_batch_size 64 = 4, wanted 1",
        zh: "train_batch_size 256 / ppo_mini_batch_size 64 = 4，应为 1",
      },
    } as const;
    const unknown = {
      state: "unknown",
      path: "data/train_batch_size",
      value: null,
      text: { en: "ppo_mini_batch_size not set", zh: "未设置 ppo_mini_batch_size" },
    } as const;
    setup(loopVerdict({ preconditions: [{ code: "mini_batch_num", text, wanted, left: known, right: unknown }] }));
    const section = () => within(screen.getByRole("region", { name: /training with inference|训练与推理/ }));
    const [, row] = section().getAllByRole("row");
    expect([...(row?.children ?? [])].map(({ textContent }) => textContent)).toEqual([
      `Batcheswanted: ${wanted}`,
      " fails 4",
      " not known ",
    ]);
    const said = () =>
      section()
        .getAllByRole("listitem")
        .map(({ textContent }) => textContent);
    expect(said()).toEqual(["run-a:  train_batch_size 256 / ppo_mini_batch_size 64 = 4, wanted 1", "run-b:  ppo_mini_batch_size not set"]);
    act(() => setLanguage("zh"));
    expect(said()).toEqual(["run-a:  train_batch_size 256 / ppo_mini_batch_size 64 = 4，应为 1", "run-b:  未设置 ppo_mini_batch_size"]);
  });

  it("says an equation once where both sides come to the same", () => {
    const text = { en: "a 1, wanted 2", zh: "a 1，应为 2" };
    const side = { state: "failed", path: "a", value: 1, text } as const;
    setup(loopVerdict({ preconditions: [{ code: "c", text, wanted: "a = 2", left: side, right: side }] }));
    const section = within(screen.getByRole("region", { name: "What comparing training with inference needs" }));
    expect(section.getAllByRole("listitem").map(({ textContent }) => textContent)).toEqual(["run-a:  run-b:  a 1, wanted 2"]);
  });

  it("says at the tables of a run that read the prompts alone what a 0 there means, once", () => {
    const text = { en: "training read the prompts alone", zh: "训练只输入了提示词" };
    const only = { code: "prompts_only", severity: "warning", modules: [], text, evidence: { sides: ["left"] } } as const;
    setup(loopVerdict({ findings: [only] }));
    expect(screen.getAllByText(text.en)).toHaveLength(1);
    expect(within(screen.getByRole("region", { name: "Key data" })).getByRole("note").textContent).toBe(text.en);
  });

  it("lists settings that differ, one side only as not set", () => {
    setup();
    const rows = within(screen.getByRole("region", { name: "Settings that differ" })).getAllByRole("row");
    expect(rows.slice(1).map((row) => row.textContent)).toEqual([
      "generate/temperature10.7 yesOther tokens are drawn",
      "rl/runrun_anot set no",
    ]);
  });

  it("shows the self-checks that fail, and the others on request", () => {
    setup();
    const checks = within(screen.getByRole("region", { name: "Self-checks" }));
    expect(checks.getAllByRole("listitem").map((item) => item.textContent)).toEqual([
      "failslog_prob is above 0 run-b · 1 of 6 tables · step 1 · rank 0 · micro step 0 · worst 0.2500",
    ]);
    fireEvent.click(checks.getByRole("button", { name: "Show" }));
    expect(checks.getAllByRole("listitem")[1]?.textContent).toContain("loss is finite");
  });

  it("reads the drift of a table in words and in numbers", () => {
    setup();
    const drift = within(screen.getByRole("region", { name: "Drift over steps" }));
    expect(drift.getByRole("img", { name: "ref_log_prob: 0 at the first step, 0.04350 at the last" })).toBeTruthy();
    expect(drift.getByText("Nothing up to step 1, then something")).toBeTruthy();
  });

  it("does not show a 0 for a table that differs in an earlier step, or in what has no size", () => {
    const text = { en: "so", zh: "如此" };
    const line = { stage: null, steps: [0, 1, 2], measure: "max_abs", kind: "at_times", text } as const;
    const odd = (reason: "nonfinite" | "shapes") => ({ values: [0, null, 0], without_size: [{ step: 1, reason }] });
    setup(
      loopVerdict({
        drift: [
          { ...line, key: "advantages", values: [0, 0.5, 0] },
          { ...line, key: "old_log_prob", ...odd("nonfinite") },
          { ...line, key: "values", ...odd("shapes") },
          { ...line, key: null, stage: "actor_update", measure: "norm_rel", values: [0, 0.00390625, 0.001] },
          { ...line, key: "responses", measure: "differing_tokens", values: [0, 173, 4] },
        ],
      }),
    );
    const drift = within(screen.getByRole("region", { name: "Drift over steps" }));
    const shown = () => drift.getAllByRole("listitem").map((item) => item.children[2]?.textContent);
    expect(shown()).toEqual(["0.5000", "NaN/Inf", "shapes", "0.39\u00a0%", "173"]);
    expect(drift.getByRole("img", { name: "advantages: 0 at the first step, 0 at the last, 0.5000 the largest" })).toBeTruthy();
    const dots = (name: RegExp) => drift.getByRole("img", { name }).querySelectorAll("path")[2]?.getAttribute("d")?.match(/M/g)?.length;
    expect([dots(/^old_log_prob/), dots(/^values/)]).toEqual([3, 2]);
    cleanup();
    setLanguage("zh");
    setup(loopVerdict({ drift: [{ ...line, key: "values", ...odd("shapes") }] }));
    expect(screen.getByRole("img", { name: "values：第一步 0，最后一步 0，各步最大 形状" })).toBeTruthy();
  });

  it("counts no parts and names none in the legend where there are key data alone", () => {
    setup(runVerdict([], { first: null, key_data: [keyData(0, "prompts", { kind: "tokens" })] }));
    expect(screen.queryByText(/0 parts/)).toBeNull();
    const premises = within(screen.getByRole("list", { name: "Premises" })).getAllByRole("listitem");
    expect(premises.map(({ textContent }) => textContent)).toEqual(["prompts, holds", "Premises 1/1"]);
    expect(screen.getByRole("region", { name: "Legend of the parts" }).textContent).toBe("? keys");
  });

  it("tells two runs of one name apart by their sides", () => {
    const verdict = loopVerdict();
    const { left, right } = runComparison(verdict);
    setup(verdict, { left: { ...left, name: "verl" }, right: { ...right, name: "verl" } });
    const heads = () => within(screen.getByRole("region", { name: /^(Settings that differ|不同的配置)$/ })).getAllByRole("columnheader");
    expect(heads().map(({ textContent }) => textContent?.trim())).toEqual(["Settings that differ", "Left", "Right", "Matters"]);
    act(() => setLanguage("zh"));
    expect(heads().map(({ textContent }) => textContent?.trim())).toEqual(["不同的配置", "左侧", "右侧", "是否关键"]);
  });

  it("compares the same runs again under another pairing of stages", async () => {
    const { asked } = setup();
    const pairing = within(screen.getByRole("region", { name: "Stage pairing" }));
    const proposed = pairing.getAllByRole("listitem")[1] as HTMLElement;
    fireEvent.click(within(proposed).getByRole("button", { name: "Compare this pairing" }));
    await waitFor(() => expect(window.location.pathname).toBe("/c/new"));
    expect(asked.find(({ method }) => method === "POST")).toEqual({
      method: "POST",
      path: "/api/v1/comparisons/",
      body: { left: "l", right: "r", name: "", options: { stage: "actor_compute_log_prob:actor_generate_sequences" } },
    });
  });

  it("offers whoever only looks no other pairing", () => {
    setup(loopVerdict(), { read_only: true });
    expect(within(screen.getByRole("region", { name: "Stage pairing" })).queryAllByRole("button")).toEqual([]);
  });

  it("says nothing of stages where no part has one", () => {
    const pair = {
      left: null,
      right: null,
      reason: "same_name",
      used: true,
      parts: 2,
      option: null,
      text: { en: "same", zh: "同" },
    } as const;
    const first = { key_data: null, stage: null, step: 1, rank: 0, module: "model.embed_tokens" };
    const parts = [runPart(0, { step: 0 }), runPart(1, { step: 1, verdict: "diverged" })];
    setup(runVerdict(parts, { first, stage_pairs: [pair] }));
    expect(screen.queryByRole("region", { name: "Stage pairing" })).toBeNull();
    expect(screen.getByText("the worst rank of each step")).toBeTruthy();
    const chain = within(screen.getByRole("region", { name: "The module that parts first" }));
    expect(chain.getAllByRole("listitem")[0]?.textContent).toMatch(/^1embed_tokens parts first/);
  });

  it("says so where all key data are equal, and leaves out what is not there", () => {
    setup(
      loopVerdict({
        first: null,
        verdict: "identical",
        key_data: [keyData(0, "prompts"), keyData(1, "loss")],
        configurations: [],
        preconditions: [],
        checks: [],
        drift: [],
        findings: [],
        stage_pairs: [],
      }),
    );
    expect(screen.getByText("all 2 equal at every step")).toBeTruthy();
    for (const name of ["From the table to the module", "Settings that differ", "Self-checks", "Drift over steps"]) {
      expect(screen.queryByRole("region", { name })).toBeNull();
    }
  });

  it("says of runs that agree how their sequences and ranks were brought together", () => {
    const text = { en: "The sequences come in another order on the right", zh: "右侧序列的顺序不同" };
    setup(
      loopVerdict({
        first: null,
        verdict: "identical",
        key_data: [keyData(0, "prompts")],
        findings: [{ code: "key_data_moved", severity: "info", modules: [], text, evidence: {} }],
      }),
    );
    const region = within(screen.getByRole("region", { name: "What this rests on" }));
    expect(region.getByRole("listitem").textContent).toBe(text.en);
  });

  it("says what the state of a key does not speak for: one side only, not compared, padding", () => {
    const counts = { equal: 0, differs: 0, left_only: 0, right_only: 0 };
    setup(
      loopVerdict({
        first: null,
        verdict: "consistent",
        key_data: [
          keyData(0, "prompts", { kind: "tokens", counts: { ...counts, equal: 6, left_only: 2 }, tables: 8 }),
          keyData(1, "log_prob", { state: "padding", first: null, counts: { ...counts, equal: 2, padding: 4 } }),
          keyData(2, "kl_loss", { state: "not_compared", first: null, counts: { ...counts, not_comparable: 6 } }),
          keyData(3, "loss", { state: "not_compared", first: null, counts: { ...counts, left_only: 3, right_only: 3 } }),
        ],
      }),
    );
    const strip = within(screen.getByRole("region", { name: "Key data" }));
    expect(strip.getAllByRole("button").map((button) => [...button.children].map(({ textContent }) => textContent))).toEqual([
      ["prompts", "equal", expect.stringMatching(/^2 only in /)],
      ["log_prob", "only padding differs", "4 of 6 tables"],
      ["kl_loss", "not compared", "6 not compared"],
      ["loss", "not compared", expect.stringMatching(/^3 only in .*, 3 only in /)],
    ]);
    expect(strip.queryByText(/equal at every step|all \d+ equal/)).toBeNull();
  });

  it("speaks Chinese", () => {
    setLanguage("zh");
    setup();
    expect(screen.getByRole("button", { name: /^ref_log_prob 有差异，2 \/ 6 第 2 步 · rank 0 最早出现差异的表/ })).toBeTruthy();
    expect(screen.getByText("第 2 步之前：9 项全部相等")).toBeTruthy();
  });

  it("keeps the table that is shown in the address", () => {
    setup();
    fireEvent.click(screen.getByRole("button", { name: /^kl_loss/ }));
    expect(screen.getByRole("button", { name: /^kl_loss/ }).getAttribute("aria-pressed")).toBe("true");
    changeView({}, "push");
    expect(window.location.hash).toBe("#v=1&k=7");
  });
});

describe("parts that are still being compared, or failed", () => {
  afterEach(cleanup);

  it("are not called the first divergence where the one that the key data lead to failed", async () => {
    const error = { code: "out_of_memory", params: {}, message: "No memory" };
    const agreed = loopVerdict();
    const failed = { verdict: "not_comparable", first_divergence: null, state: "failed", error } as const;
    const parts = agreed.parts.map((part) => (part.n === 9 ? { ...part, ...failed } : part));
    setup({ ...agreed, parts, first: { ...(agreed.first as RunFirst), module: null }, first_part: 9, first_origin: null });
    const cell = within(screen.getByTestId("parts")).getByRole("button", { name: /^step 2 · reference_compute_log_prob, failed, / });
    expect([cell.dataset.verdict, cell.dataset.first]).toEqual(["failed", "false"]);
    expect(screen.queryByText("first divergence")).toBeNull();
    expect(within(screen.getByRole("region", { name: "Legend of the parts" })).getByText("failed")).toBeTruthy();
    const chain = within(screen.getByRole("region", { name: "From the table to the module" }));
    expect(chain.getByText(/made by/).textContent).toBe("made by reference_compute_log_prob, which could not be compared");
    expect(screen.queryByRole("button", { name: /Open the first divergence/ })).toBeNull();
    fireEvent.click(screen.getByRole("button", { name: /^kl_loss/ }));
    fireEvent.click(screen.getByRole("button", { name: /Open the key data/ }));
    const strip = within(screen.getByRole("region", { name: "Key data" }));
    expect(strip.getByRole("button", { pressed: true }).dataset.key).toBe("ref_log_prob");
    expect(window.location.hash).not.toContain("p=");
  });

  it("stand beside those that are done, each with its state and its error in words", () => {
    const verdict = loopVerdict();
    const parts = verdict.parts.map((part) =>
      part.n === 10
        ? { ...part, verdict: null, state: "failed" as const, error: { code: "out_of_memory", params: {}, message: "No memory" } }
        : part.n === 11
          ? { ...part, verdict: null, state: "running" as const, error: null }
          : part,
    );
    setup({ ...verdict, parts });
    const grid = within(screen.getByTestId("parts"));
    const failed = grid.getByRole("button", { name: /^step 2 · actor_compute_log_prob, failed, / });
    expect(failed.getAttribute("aria-disabled")).toBe(null);
    expect(grid.getByRole("button", { name: "step 2 · actor_update, being compared, Being compared now" })).toBeTruthy();
    expect(grid.getByRole("button", { name: /step 2 · reference_compute_log_prob, first divergence/ })).toBeTruthy();
    expect(screen.getByText(/1 still to come · 1 failed/)).toBeTruthy();
  });
});
