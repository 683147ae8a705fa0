import { afterEach, describe, expect, it, vi } from "vitest";
import { exportAddress, waitForExport } from "./download";

function answer(status: number, body: unknown): Response {
  return new Response(JSON.stringify(body), { status });
}

afterEach(() => vi.restoreAllMocks());

describe("waiting for a file that the server makes", () => {
  it("asks for the language that was chosen", () => {
    expect(exportAddress("abc", { name: "report.html", lang: "zh" })).toBe("/api/v1/comparisons/abc/report.html?lang=zh");
    expect(exportAddress("abc", { name: "table.csv" })).toBe("/api/v1/comparisons/abc/table.csv");
  });

  it("asks again while it is made, says how far that is, and ends when it is there", async () => {
    vi.useFakeTimers();
    const answers = [
      answer(202, { state: "queued", progress: {} }),
      answer(202, { state: "making", progress: { rows: 20 } }),
      answer(200, "file"),
    ];
    const fetched = vi.spyOn(window, "fetch").mockImplementation(() => Promise.resolve(answers.shift() as Response));
    const heard: unknown[] = [];
    const waiting = waitForExport("/x", (progress) => heard.push(progress), new AbortController().signal);
    await vi.runAllTimersAsync();
    await waiting;
    vi.useRealTimers();
    expect(fetched).toHaveBeenCalledTimes(3);
    expect(heard).toEqual([{}, { rows: 20 }]);
  });

  it("says why a file could not be made", async () => {
    vi.spyOn(window, "fetch").mockResolvedValue(answer(500, { code: "out_of_memory", params: {}, message: "No." }));
    const waiting = waitForExport("/x", () => undefined, new AbortController().signal);
    await expect(waiting).rejects.toMatchObject({ status: 500, problem: { code: "out_of_memory" } });
  });
});
