import { describe, expect, it } from "vitest";
import { RequestError, UNREACHABLE } from "../../api/problem";
import { pollDelay } from "../../api/queries";
import type { Comparison, ComparisonState, RunState } from "../../api/types";
import { messagesOf } from "../../i18n";
import { formatOf } from "../../i18n/format";
import { figures } from "./Running";
import { stageOf, worthRetrying } from "./stage";

function comparison(state: ComparisonState, { verdict = null, left = "ready" }: { verdict?: unknown; left?: RunState } = {}): Comparison {
  return { state, verdict, left: { state: left }, right: { state: "ready" } } as unknown as Comparison;
}

const refused = (status: number) => new RequestError(status, { code: "x", params: {}, message: "No." });

describe("what the page shows of a comparison", () => {
  it("follows its state", () => {
    expect(stageOf(undefined, null)).toBe("loading");
    expect(stageOf(comparison("queued", { left: "parsing" }), null)).toBe("waiting");
    expect(stageOf(comparison("queued"), null)).toBe("queued");
    expect(stageOf(comparison("running"), null)).toBe("running");
    expect(stageOf(comparison("failed"), null)).toBe("failed");
    expect(stageOf(comparison("interrupted"), null)).toBe("interrupted");
  });

  it("is the verdict as soon as that is known, before the comparison is done", () => {
    expect(stageOf(comparison("running", { verdict: {} }), null)).toBe("verdict");
    expect(stageOf(comparison("done", { verdict: {} }), null)).toBe("verdict");
  });

  it("tells not there from not allowed from no answer", () => {
    expect([404, 410, 403, 0, 503, 400].map((status) => stageOf(undefined, refused(status)))).toEqual([
      "missing",
      "missing",
      "forbidden",
      "unreachable",
      "unreachable",
      "refused",
    ]);
  });

  it("stays when the server stops answering, and goes when the comparison was deleted", () => {
    expect(stageOf(comparison("running"), new RequestError(0, UNREACHABLE))).toBe("running");
    expect(stageOf(comparison("done", { verdict: {} }), refused(404))).toBe("missing");
  });
});

describe("following", () => {
  it("asks every second at first and every three in the end", () => {
    expect([0, 1, 3].map(pollDelay)).toEqual([1000, 1000, 1000]);
    expect(pollDelay(20)).toBe(3000);
  });

  it("offers a retry for faults of the machine, not of the dump", () => {
    expect(["worker_killed", "internal", "json_truncated", "no_dump"].map(worthRetrying)).toEqual([true, true, false, false]);
  });

  it("says the share and what the worker counts", () => {
    const say = (progress: Parameters<typeof figures>[0]) => figures(progress, messagesOf("en"), formatOf("en")).replaceAll("\u00a0", " ");
    expect(say({ stage: "align", fraction: 0.61, records: 190, of: 318 })).toBe("61 % · 190 of 318 records");
    expect(say({ stage: "read", fraction: 0.5, bytes: 30_300_000, of: 60_600_000 })).toBe("50 % · 30.3 of 60.6 MB");
    const spread = { stage: "parts", fraction: 0.325, parts: 38, of: 120, running: 2 };
    expect(say(spread)).toBe("32 % · 38 of 120 parts done, 2 in progress");
    expect(say({})).toBe("");
  });
});
