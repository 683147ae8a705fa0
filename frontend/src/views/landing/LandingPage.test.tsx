import { QueryClient, QueryClientProvider } from "@tanstack/react-query";
import { act, fireEvent, render, screen, waitFor, within } from "@testing-library/react";
import { beforeEach, describe, expect, it, vi } from "vitest";
import { setLanguage } from "../../ui/preferences";
import { type SideView, sides } from "../../upload/side";
import { LandingPage } from "./LandingPage";

const ROW = {
  id: "abc",
  url: "/c/abc",
  name: "qwen2 step 0",
  state: "done",
  progress: {},
  error: null,
  verdict: "diverged",
  headline: {
    en: "First divergence: layers.2 \u00b7 mlp.down_proj \u2014 weights differ",
    zh: "\u9996\u4e2a\u5dee\u5f02\uff1alayers.2 \u2014 \u6743\u91cd\u4e0d\u540c",
  },
  left: { name: "fsdp-1130", role: "auto" },
  right: { name: "rollout-1130", role: "auto" },
  example: "",
  created_at: new Date().toISOString(),
};

type Answers = Record<string, { status?: number; body: unknown }>;

/** The page over a network that answers as the test says; `asked` collects what it was asked. */
function setup(answers: Answers = {}) {
  const asked: string[] = [];
  const sent: unknown[] = [];
  const known: Answers = {
    "GET /api/v1/about/": { body: { example: "ex", public_url: "http://127.0.0.1", loopback_only: true } },
    "GET /api/v1/comparisons/": { body: { results: [ROW], next: null } },
    ...answers,
  };
  vi.spyOn(window, "fetch").mockImplementation(async (request) => {
    const { method, url } = request as Request;
    if (method === "POST") sent.push(await (request as Request).clone().json());
    const { pathname, search } = new URL(url);
    asked.push(`${method} ${pathname}${search}`);
    const { status = 200, body } = known[`${method} ${pathname}`] ?? {
      status: 404,
      body: { code: "not_found", params: {}, message: "No." },
    };
    return new Response(JSON.stringify(body), { status, headers: { "Content-Type": "application/json" } });
  });
  const queries = new QueryClient({ defaultOptions: { queries: { retry: false } } });
  render(
    <QueryClientProvider client={queries}>
      <LandingPage />
    </QueryClientProvider>,
  );
  return { asked, sent };
}

function hold(side: "left" | "right", view: SideView) {
  act(() => sides[side].put(view));
}

const run = (id: string, more: object = {}) => ({
  [`GET /api/v1/runs/${id}/`]: {
    body: { id, name: id, role: "auto", state: "parsing", progress: {}, error: null, inventory: null, sha256: "", ...more },
  },
});

describe("the start page", () => {
  beforeEach(() => {
    window.history.replaceState(null, "", "/");
    setLanguage("en");
    hold("left", { phase: "empty" });
    hold("right", { phase: "empty" });
  });

  it("shows what was compared before, with verdict, names and time", async () => {
    setup();
    const row = await screen.findByRole("link", { name: /qwen2 step 0/ });
    expect(row.getAttribute("href")).toBe("/c/abc");
    for (const text of ["First divergence: layers.2", "fsdp-1130", "rollout-1130", "now"]) expect(row.textContent).toContain(text);
  });

  it("says what Compare waits for", () => {
    setup();
    const button = () => screen.getByRole("button", { name: /^Compare/ });
    expect(button().textContent).toBe("Compare, waiting for two dumps");
    hold("left", { phase: "run", id: "a", name: "a", about: null });
    expect(button().textContent).toBe("Compare, waiting for inference");
    expect(button().getAttribute("aria-disabled")).toBe("true");
  });

  it("starts a comparison of two runs that are still being read, and moves on at once", async () => {
    const { asked } = setup({
      ...run("a"),
      ...run("b"),
      "POST /api/v1/comparisons/": { status: 201, body: { id: "c", url: "/c/c", state: "queued" } },
    });
    hold("left", { phase: "run", id: "a", name: "a", about: null });
    hold("right", { phase: "run", id: "b", name: "b", about: null });
    fireEvent.click(await screen.findByRole("button", { name: "Compare" }));
    await waitFor(() => expect(window.location.pathname).toBe("/c/c"));
    expect(asked).toContain("POST /api/v1/comparisons/");
  });

  it("keeps the card of a run that cannot be read, with one sentence and a way to replace it", async () => {
    const error = { code: "not_a_dump", params: {}, message: "a.json: This is JSON, but no dump.", where: "a.json" };
    setup(run("a", { state: "failed", error }));
    hold("left", { phase: "run", id: "a", name: "a", about: null });
    const side = screen.getByRole("region", { name: "Training dump" });
    expect((await within(side).findByRole("alert")).textContent).toBe(error.message);
    expect(within(side).getByRole("button", { name: "Choose another" })).toBeTruthy();
    expect(screen.getByRole("button", { name: /^Compare/ }).textContent).toBe("Compare, one side cannot be read");
  });

  it("says that a dump reads like the other role and offers to swap the sides", async () => {
    const inventory = {
      role: "infer",
      role_evidence: "engine_modules",
      framework: "pytorch",
      wrapping: "vLLM",
      task: "statistics",
      level: "L0",
      dtype: "bfloat16",
      stages: [],
      steps: [0],
      ranks: [0],
      counts: { records: 52, bytes: 5095 },
      missing: ["stack.json"],
      left_aside: [],
      digest: "ab".repeat(32),
    };
    setup(run("a", { state: "ready", inventory }));
    hold("left", { phase: "run", id: "a", name: "a", about: null });
    const side = screen.getByRole("region", { name: "Training dump" });
    await within(side).findByText("reads like inference: engine modules");
    expect(within(side).getByText("construct.json found; no stack.json: no source lines")).toBeTruthy();
    expect(within(side).getByText("statistics, L0, bf16")).toBeTruthy();
    fireEvent.click(within(side).getByRole("button", { name: "swap the sides" }));
    expect(sides.left.view().phase).toBe("empty");
    await within(screen.getByRole("region", { name: "Inference dump" })).findByText("inference, guessed from engine modules");
  });

  it("names the dumps of a run that cannot be read, among those that can", async () => {
    const unreadable = [
      {
        place: "b.zip!update/step2/rank0/dump.json",
        stage: "update",
        step: 2,
        rank: 0,
        error: {
          code: "file_empty",
          params: {},
          message: "b.zip!update/step2/rank0/dump.json: It is empty",
          where: "b.zip!update/step2/rank0/dump.json",
        },
      },
    ];
    const inventory = {
      role: "train",
      role_evidence: "gradients",
      framework: "pytorch",
      wrapping: null,
      task: "statistics",
      level: "L0",
      dtype: null,
      stages: ["update"],
      steps: [0],
      ranks: [0],
      counts: { records: 52, bytes: 5095 },
      missing: [],
      unreadable,
      left_aside: [],
      digest: "ab".repeat(32),
    };
    setup(run("a", { state: "ready", inventory }));
    hold("left", { phase: "run", id: "a", name: "a", about: null });
    const side = screen.getByRole("region", { name: "Training dump" });
    expect((await within(side).findByText("Damaged")).nextElementSibling?.textContent).toMatch(
      /^\s*b\.zip!update\/step2\/rank0\/dump\.json: /,
    );
  });

  it("calls two runs of one role left and right, without asking to swap what is no use to swap", async () => {
    const inventory = {
      role: "train",
      role_evidence: "gradients",
      framework: "pytorch",
      wrapping: "vLLM",
      task: "statistics",
      level: "L0",
      dtype: null,
      stages: ["reference"],
      steps: [0],
      ranks: [0],
      counts: { records: 52, bytes: 5095 },
      missing: [],
      left_aside: [],
      digest: "ab".repeat(32),
    };
    setup({ ...run("aaaaaaaa", { state: "ready", inventory }), ...run("bbbbbbbb", { state: "ready", inventory }) });
    hold("left", { phase: "run", id: "aaaaaaaa", name: "a", about: null });
    hold("right", { phase: "run", id: "bbbbbbbb", name: "b", about: null });
    const right = await screen.findByRole("region", { name: "Right run" });
    expect(within(right).getByRole("heading", { name: /^Right/ })).toBeTruthy();
    expect(within(right).getByText("train, guessed from gradients")).toBeTruthy();
    expect(within(right).getByText("PyTorch, in part vLLM")).toBeTruthy();
    expect(screen.queryByText(/reads like/)).toBeNull();
    expect(within(screen.getByRole("region", { name: "Left run" })).getByRole("heading", { name: /^Left/ })).toBeTruthy();
  });

  it("offers what the dumps hold as options, and sends what was chosen", async () => {
    const inventory = {
      role: "train",
      role_evidence: "gradients",
      framework: "pytorch",
      wrapping: null,
      task: "statistics",
      level: "L0",
      dtype: null,
      stages: [],
      steps: [0, 1],
      ranks: [0],
      counts: { records: 52, bytes: 5095 },
      missing: [],
      left_aside: [],
      digest: "ab".repeat(32),
    };
    const { sent } = setup({
      ...run("aaaaaaaa", { state: "ready", inventory }),
      ...run("bbbbbbbb"),
      ...run("cccccccc", { name: "again" }),
      "GET /api/v1/runs/": { body: { results: [], next: null } },
      "POST /api/v1/comparisons/": { status: 201, body: { id: "c", url: "/c/c", state: "queued" } },
    });
    hold("left", { phase: "run", id: "aaaaaaaa", name: "a", about: null });
    hold("right", { phase: "run", id: "bbbbbbbb", name: "b", about: null });
    // The imitated browser opens no details by itself; the real one does so in tests/browser.
    const details = screen.getByText("Options").closest("details") as HTMLDetailsElement;
    details.open = true;
    fireEvent(details, new Event("toggle"));
    const left = await screen.findByRole("combobox", { name: "Train: step" });
    expect(
      within(left)
        .getAllByRole("option")
        .map(({ textContent }) => textContent),
    ).toEqual(["all", "0", "1"]);
    fireEvent.change(left, { target: { value: "1" } });
    fireEvent.change(screen.getByRole("textbox", { name: "Inference: step" }), { target: { value: "0" } });
    expect(screen.getByText("0, the only one")).toBeTruthy();
    fireEvent.click(screen.getByRole("checkbox", { name: /^exact/ }));
    fireEvent.change(screen.getByLabelText("baseline"), { target: { value: "http://127.0.0.1/r/cccccccc" } });
    await screen.findByText("Baseline: again");
    expect(screen.getByText("Options: step 1:0, exact, baseline")).toBeTruthy();
    fireEvent.click(screen.getByRole("button", { name: "Compare" }));
    await waitFor(() => expect(window.location.pathname).toBe("/c/c"));
    expect(sent[0]).toMatchObject({ options: { step: "1:0", exact: true, baseline: "cccccccc" } });
  });

  it("opens the example", async () => {
    setup();
    fireEvent.click(await screen.findByRole("button", { name: "Open the example" }));
    expect(window.location.pathname).toBe("/c/ex");
  });

  it("searches a moment after the last key", async () => {
    const { asked } = setup();
    fireEvent.change(screen.getByRole("searchbox"), { target: { value: "down_proj" } });
    await waitFor(() => expect(asked).toContain("GET /api/v1/comparisons/?search=down_proj"));
  });

  it("says that links open all the same where the list is closed", async () => {
    setup({ "GET /api/v1/comparisons/": { status: 403, body: { code: "lists_closed", params: {}, message: "Closed." } } });
    expect(await screen.findByText(/Lists are open on the machine that runs probe only/)).toBeTruthy();
    expect(screen.queryByRole("searchbox")).toBeNull();
  });

  it("offers to try again when the list fails", async () => {
    setup({ "GET /api/v1/comparisons/": { status: 400, body: { code: "malformed", params: {}, message: "Bad." } } });
    expect(await screen.findByRole("button", { name: "Retry" })).toBeTruthy();
  });

  it("says what to do where nothing was compared yet", async () => {
    setup({ "GET /api/v1/comparisons/": { body: { results: [], next: null } } });
    expect(await screen.findByText(/Nothing here yet/)).toBeTruthy();
  });

  it("speaks Chinese as well", async () => {
    setup();
    fireEvent.click(screen.getByRole("button", { name: "\u4e2d\u6587" }));
    expect(screen.getByRole("heading", { level: 1 }).textContent).toBe(
      "\u8fd9\u4e24\u6b21\u8fd0\u884c\uff0c\u4ece\u54ea\u91cc\u5f00\u59cb\u4e0d\u540c\uff1f",
    );
    setLanguage("en");
  });
});
