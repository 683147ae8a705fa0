import { QueryClient, QueryClientProvider } from "@tanstack/react-query";
import { act, cleanup, fireEvent, render, screen, waitFor, within } from "@testing-library/react";
import { beforeEach, describe, expect, it, vi } from "vitest";
import type { Comparison } from "../../api/types";
import { runComparison, runPart, runVerdict } from "../../model/parts-for-tests";
import { loopVerdict } from "../../model/run-verdict-for-tests";
import { setLanguage } from "../../ui/preferences";
import { origin } from "../compare/documents-for-tests";
import ComparisonPage from "./ComparisonPage";

const parts = [
  runPart(0, { stage: "generate", step: 0 }),
  runPart(1, { stage: "generate", step: 2, verdict: "consistent" }),
  runPart(2, { stage: "reference", step: 0, verdict: "not_comparable" }),
  runPart(3, { stage: "reference", step: 2, verdict: "diverged", first_divergence: origin(), ranks: [0, 1, 2, 3] }),
  runPart(4, { stage: "update", step: 2, verdict: "diverged", first_divergence: origin({ module: "lm_head", kind: "origin" }) }),
  runPart(5, { stage: "update", step: 3, verdict: "right_only" }),
];

/** The page over a network that knows one comparison with six parts. */
function setup(own: Partial<Comparison> = {}, others: Readonly<Record<string, unknown>> = {}) {
  const asked: string[] = [];
  const refusal = { code: "not_found", params: {}, message: "No." };
  vi.spyOn(window, "fetch").mockImplementation(async (request) => {
    const { pathname } = new URL(typeof request === "string" ? request : (request as Request).url, window.location.origin);
    asked.push(pathname);
    const known: Readonly<Record<string, unknown>> = {
      "/api/v1/comparisons/abc/": { ...runComparison(runVerdict(parts)), ...own },
      ...others,
    };
    return new Response(JSON.stringify(known[pathname] ?? refusal), {
      status: pathname in known ? 200 : 404,
      headers: { "Content-Type": "application/json" },
    });
  });
  const queries = new QueryClient({ defaultOptions: { queries: { retry: false } } });
  render(
    <QueryClientProvider client={queries}>
      <ComparisonPage slug="abc" />
    </QueryClientProvider>,
  );
  return { asked };
}

function address(hash: string) {
  window.history.replaceState(null, "", `/c/abc${hash}`);
  act(() => {
    window.dispatchEvent(new PopStateEvent("popstate"));
  });
}

const cell = (name: RegExp) => screen.getByRole("button", { name });

describe("a comparison of several steps and stages", () => {
  beforeEach(() => {
    vi.restoreAllMocks();
    vi.stubGlobal(
      "ResizeObserver",
      class {
        observe() {}
        disconnect() {}
      },
    );
    vi.stubGlobal("matchMedia", () => ({ matches: false, addEventListener() {}, removeEventListener() {} }));
    // The grid lays itself out by the width of its box, which jsdom does not know.
    vi.spyOn(HTMLElement.prototype, "clientWidth", "get").mockReturnValue(1400);
    setLanguage("en");
    address("");
  });

  it("says where the run first parts and what that is", async () => {
    setup();
    const sentence = await screen.findByTestId("verdict-sentence");
    expect(sentence.textContent).toBe(
      "First divergence: reference, step 2, layers.11 · mlp.down_proj — a weight differs (Norm −2.41\u00a0%)",
    );
    expect(sentence.querySelector("b")?.textContent).toBe("First divergence: reference, step 2, layers.11 · mlp.down_proj");
    expect(screen.getByText("2 of 6 parts diverge · 1 consistent · 1 identical · 1 not comparable · 1 on one side only")).toBeTruthy();
  });

  it("names every cell by its part, its verdict, and the module or the reason", async () => {
    setup();
    const grid = within(await screen.findByTestId("parts"));
    expect(grid.getAllByRole("button").map((button) => button.getAttribute("aria-label"))).toEqual([
      "step 0 · generate, identical, Every pair is equal",
      "step 2 · generate, consistent, Nothing beyond noise",
      "step 0 · reference, not comparable, A premise failed; the part says which",
      "step 2 · reference, first divergence, layers.11 · mlp.down_proj",
      "step 2 · update, diverged, lm_head",
      "step 3 · update, right side only, Only run-b has this part: there is nothing to compare it with",
    ]);
  });

  it("starts on the first divergence; arrows move, and only one cell is a stop of the Tab key", async () => {
    setup();
    await waitFor(() => expect(document.activeElement).toBe(cell(/first divergence, layers/)));
    const grid = screen.getByTestId("parts");
    fireEvent.keyDown(grid, { key: "ArrowUp" });
    expect(document.activeElement).toBe(cell(/step 2 · generate/));
    fireEvent.keyDown(grid, { key: "ArrowLeft" });
    expect(document.activeElement).toBe(cell(/step 0 · generate/));
    expect(
      within(grid)
        .getAllByRole("button")
        .filter((button) => button.tabIndex === 0),
    ).toEqual([cell(/step 0 · generate/)]);
  });

  it("lists the parts with stage, step, ranks and module, and links each that can be opened", async () => {
    setup();
    const rows = within(await screen.findByRole("region", { name: "Parts" })).getAllByRole("listitem");
    expect(rows.map((row) => row.querySelector("a")?.getAttribute("href") ?? null)).toEqual([
      "#v=1&p=0",
      "#v=1&p=1",
      "#v=1&p=2",
      "#v=1&p=3",
      "#v=1&p=4",
      null,
    ]);
    expect(rows[3]?.textContent).toContain("reference");
    expect(rows[3]?.textContent).toContain("rank 0–3");
    expect(rows[5]?.textContent).toContain("Only run-b has this part");
  });

  it("opens a part at an address of its own, asks for its verdict, and says which part it is", async () => {
    const { asked } = setup();
    fireEvent.click(await screen.findByRole("button", { name: /step 2 · update/ }));
    expect(window.location.hash).toBe("#v=1&p=4");
    const bar = within(screen.getByRole("navigation", { name: "This part" }));
    expect(bar.getByText("step 2 · update")).toBeTruthy();
    expect(bar.getByText("part 5 of 6")).toBeTruthy();
    expect(bar.getByRole("button", { name: "Next part" }).getAttribute("aria-disabled")).toBe("true");
    await waitFor(() => expect(asked).toContain("/api/v1/comparisons/abc/parts/4/verdict.json"));
    expect(document.title).toBe("▲ step 2 · update · two runs · probe");
    fireEvent.click(bar.getByRole("button", { name: "Previous part" }));
    expect(window.location.hash).toBe("#v=1&p=3");
  });

  it("comes back to the cell of the part that was left", async () => {
    setup();
    fireEvent.click(await screen.findByRole("button", { name: /step 2 · update/ }));
    address("");
    await waitFor(() => expect(screen.getByTestId("parts")).toBeTruthy());
    expect(cell(/step 2 · update/).tabIndex).toBe(0);
  });

  it("does not open a part that is on one side only, and says why", async () => {
    const { asked } = setup();
    const only = await screen.findByRole("button", { name: /right side only/ });
    fireEvent.click(only);
    expect(window.location.hash).toBe("");
    address("#v=1&p=5");
    expect(await screen.findByRole("heading", { name: "This part is on one side only" })).toBeTruthy();
    expect(asked.filter((path) => path.includes("/parts/"))).toEqual([]);
  });

  it("says so where the address names a part that is not there", async () => {
    address("#v=1&p=zz");
    setup();
    expect(await screen.findByRole("heading", { name: "No such part" })).toBeTruthy();
  });

  it("is told in Chinese as well", async () => {
    setLanguage("zh");
    setup();
    await screen.findByTestId("parts");
    expect(cell(/第 2 步 · reference，首个分歧/)).toBeTruthy();
    expect(screen.getByText("6 个部分中 2 个存在分歧 · 1 个一致 · 1 个完全相同 · 1 个不可比较 · 1 个仅一侧有")).toBeTruthy();
  });

  it("shows the parts while they are compared, opens those that are done, and hides none behind one that failed", async () => {
    const state = (n: number, own: Partial<Comparison["parts"][number]>) => ({
      n,
      stage: "update",
      step: n,
      state: "done" as const,
      verdict: "identical" as const,
      error: null,
      ...own,
    });
    const { asked } = setup({
      state: "running",
      verdict: null,
      progress: { stage: "parts", fraction: 0.5, parts: 2, of: 4, running: 1 },
      parts: [
        state(0, {}),
        state(1, { verdict: null, state: "failed", error: { code: "out_of_memory", params: {}, message: "No memory" } }),
        state(2, { verdict: null, state: "running" }),
        state(3, { verdict: "diverged" }),
      ],
    });
    await screen.findByRole("heading", {
      name: "Earliest so far: step 3 · update — 2 of 4 parts compared; 1 earlier part is still to be compared",
    });
    expect(screen.getByText("provisional")).toBeTruthy();
    expect(screen.getByText("1 being compared · 1 failed · a part that is still to come may part earlier")).toBeTruthy();
    expect(screen.getByRole("progressbar", { name: "Parts compared" }).getAttribute("aria-valuenow")).toBe("3");
    const grid = within(screen.getByTestId("parts"));
    expect(grid.getAllByRole("button").map((button) => [button.dataset.verdict, button.getAttribute("aria-disabled")])).toEqual([
      ["identical", null],
      ["failed", null],
      ["running", "true"],
      ["diverged", null],
    ]);
    fireEvent.click(cell(/step 3 · update, earliest so far/));
    await waitFor(() => expect(asked).toContain("/api/v1/comparisons/abc/parts/3/verdict.json"));
    address("#p=1");
    expect(await screen.findByRole("heading", { name: "This part could not be compared" })).toBeTruthy();
    expect(asked).not.toContain("/api/v1/comparisons/abc/parts/1/verdict.json");
    fireEvent.click(screen.getByRole("button", { name: "Try this part again, step 1 · update" }));
    await waitFor(() => expect(asked).toContain("/api/v1/comparisons/abc/parts/1/retry/"));
  });

  it("shows the key data with what they say while no part is compared yet", async () => {
    const waiting = (n: number) => ({ n, stage: "generate", step: n, state: "queued" as const, verdict: null, error: null });
    const first = { key: "ref_log_prob", step: 2, rank: 0, micro_step: 0, id: "0" };
    setup(
      {
        state: "running",
        verdict: null,
        parts: [waiting(0), waiting(1)],
        loop: { state: "done", error: null },
      },
      {
        "/api/v1/comparisons/abc/loop/": {
          ...loopVerdict(),
          tables: 12,
          first: { ...first, since: { en: "from step 2 on", zh: "从第 2 步起" }, meaning: { en: "reference model", zh: "参考模型" } },
        },
      },
    );
    await screen.findByRole("heading", {
      name: "First difference in the key data: ref_log_prob from step 2 on — reference model; 0 of 2 parts compared",
    });
    expect(screen.getByRole("region", { name: "Key data" }).querySelector("[data-first=true]")?.getAttribute("data-key")).toBe(
      "ref_log_prob",
    );
  });

  it("does not say that nothing diverged so far where the key data differ, in both languages", async () => {
    const part = (n: number) => ({ n, stage: "generate", step: n, verdict: "identical" as const, state: "done" as const, error: null });
    const first = { key: "ref_log_prob", step: 2, rank: 0, micro_step: 0, id: "0" };
    const since = { en: "from step 2 on", zh: "从第 2 步起" };
    setup(
      {
        state: "running",
        verdict: null,
        parts: [part(0), { ...part(1), state: "queued", verdict: null }],
        loop: { state: "done", error: null },
      },
      {
        "/api/v1/comparisons/abc/loop/": {
          ...loopVerdict(),
          tables: 12,
          first: { ...first, since, meaning: { en: "reference model", zh: "参考模型" } },
        },
      },
    );
    await screen.findByRole("heading", {
      name: "First difference in the key data: ref_log_prob from step 2 on — reference model; 1 of 2 parts compared, none of them diverges",
    });
    expect(screen.queryByText(/No divergence so far|Key data, compared whole/)).toBeNull();
    act(() => setLanguage("zh"));
    await screen.findByRole("heading", {
      name: "关键数据的首个差异：ref_log_prob，从第 2 步起 — 参考模型；已比对 1 / 2 个部分，均无分歧",
    });
  });

  it("does not say for ever that key data are being compared where the comparison was cancelled", async () => {
    const part = { stage: "generate", step: 0, state: "cancelled" as const, verdict: null, error: null };
    const none = [0, 1].map((n) => ({ ...part, n, step: n }));
    const cancelled = { state: "cancelled", verdict: null, loop: { state: "cancelled", error: null } } as const;
    setup({ ...cancelled, parts: none });
    const region = await screen.findByRole("region", { name: "Key data" });
    expect(region.textContent).toContain("not compared when the comparison ended");
    expect(screen.queryByText(/they do not wait for the parts/)).toBeNull();
    expect(screen.getByText(/^Nothing was kept of it\./)).toBeTruthy();
    expect(screen.getByText("0 of 2 parts compared")).toBeTruthy();
    expect(screen.queryByText(/those can be opened now/)).toBeNull();
    cleanup();
    setup({ ...cancelled, parts: [{ ...part, n: 0, state: "done", verdict: "identical" }, ...none.slice(1)] });
    await screen.findByText(/^What was compared until then is kept and stands below\./);
    expect(screen.queryByText(/Nothing was kept/)).toBeNull();
    expect(screen.getByText("1 of 2 parts done; those can be opened now")).toBeTruthy();
  });

  it("keeps the room of key data that are being compared, and says why they could not be", async () => {
    const parts = [0, 1].map((n) => ({ n, stage: "generate", step: n, state: "queued" as const, verdict: null, error: null }));
    setup({ state: "running", verdict: null, parts, loop: { state: "running", error: null } });
    expect((await screen.findByRole("region", { name: "Key data" })).textContent).toContain("they do not wait for the parts");
    cleanup();
    const error = { code: "out_of_memory", params: {}, message: "" };
    setup({ state: "running", verdict: null, parts, loop: { state: "failed", error } });
    expect((await screen.findByRole("alert")).textContent).toContain("They could not be compared.");
  });

  it("offers to compare the parts that failed again", async () => {
    const failed = { n: 0, stage: "generate", step: 0, state: "failed", verdict: null, error: null } as const;
    const { asked } = setup({ parts: [failed] });
    fireEvent.click(await screen.findByRole("button", { name: "Compare 1 failed part again" }));
    await waitFor(() => expect(asked).toContain("/api/v1/comparisons/abc/retry/"));
  });
});
