import { describe, expect, it, vi } from "vitest";
import type { GatheredFile } from "./gather";
import { lookThroughLogs } from "./logs";
import { select } from "./select";

const LINE = "(TaskRunner pid=7) step:1 - actor/loss:0.25 - timing_s/gen:1.5\n";

function printed(rate: number): string {
  return `(TaskRunner pid=7) {'actor_rollout_ref': {'actor': {'lr': ${rate}},\n(TaskRunner pid=7)  'trainer': {'nnodes': 1}}}\n`;
}

function file(path: string, ...parts: BlobPart[]): GatheredFile {
  return { path, file: new File(parts, path.split("/").at(-1) ?? path, { lastModified: 1_700_000_000_000 }) };
}

/** `bytes` of lines that say nothing. */
function noise(bytes: number): string {
  return LINE.repeat(Math.ceil(bytes / LINE.length));
}

async function sentOf(files: readonly GatheredFile[]) {
  const { files: looked } = await lookThroughLogs(files);
  return select(looked).send;
}

describe("logs", () => {
  it("are sent where verl printed a configuration into them, and other text stays", async () => {
    const files = [
      file("run/step0/rank0/dump.json", "{}"),
      file("run/train.log", noise(500), printed(1)),
      file("run/nested/deep/worker.TXT", printed(2)),
      file("run/requirements.txt", "torch==2.6"),
      file("run/data/train.txt", "actor_rollout_ref is only spoken of"),
      file("run/.hidden.log", printed(3)),
    ];
    const { files: looked } = await lookThroughLogs(files);
    const { send, other, name } = select(looked);
    expect(send.map(({ path }) => path)).toEqual(["run/step0/rank0/dump.json", "run/train.log", "run/nested/deep/worker.TXT"]);
    expect(other.map(({ path }) => path)).toEqual(["run/requirements.txt", "run/data/train.txt", "run/.hidden.log"]);
    expect(name).toBe("run");
  });

  it("are a run by themselves, called after the log", async () => {
    const { files } = await lookThroughLogs([file("grpo-7b.log", printed(1))]);
    expect(select(files)).toMatchObject({ name: "grpo-7b", send: [{ path: "grpo-7b.log" }] });
    expect(select([file("notes.txt", "x")]).send).toEqual([]);
  });

  it("are sent as they are where they are small", async () => {
    const log = file("a.log", noise(1000), printed(1));
    const [sent] = await sentOf([log]);
    expect(sent).toEqual({ ...log, cutFrom: log.file.size });
    expect(sent?.file).toBe(log.file);
  });

  it("are cut down to their beginning and their configuration where they are large, whole lines from the process's name on", async () => {
    const log = file("a.log", "+ export PROMPTS_ONLY=1\n", noise(2_000_000), printed(1), noise(3_000_000));
    const [sent] = await sentOf([log]);
    expect(sent?.cutFrom).toBe(log.file.size);
    expect(sent?.file.size).toBeLessThan(700_000);
    expect(sent?.file).toMatchObject({ name: "a.log", lastModified: 1_700_000_000_000 });
    const text = await sent?.file.text();
    expect(text?.startsWith("+ export PROMPTS_ONLY=1\n")).toBe(true);
    expect(text).toContain(`\n${printed(1)}`);
  });

  it("keep the last configurations of several runs, each once", async () => {
    const runs = [1, 2, 3, 4, 5, 6].map((rate) => `${printed(rate)}${noise(rate === 5 ? 100 : 700_000)}`);
    const [sent] = await sentOf([file("a.log", noise(100_000), ...runs)]);
    const text = (await sent?.file.text()) ?? "";
    expect([...text.matchAll(/'lr': (\d)/g)].map(([, rate]) => rate)).toEqual(["3", "4", "5", "6"]);
  });

  it("are found where a configuration begins at the end of one slice and in the next", async () => {
    for (const before of [(4 << 20) - 1, (4 << 20) - 10, (4 << 20) - 18, 4 << 20, (8 << 20) - 5]) {
      const [sent] = await sentOf([file("a.log", `${"x".repeat(before - 1)}\n{'actor_rollout_ref': {'a': 1}}\n`)]);
      expect(await sent?.file.text()).toContain("\n{'actor_rollout_ref': {'a': 1}}\n");
    }
  });

  it("are read in slices, and those that are too much are named and not read", async () => {
    const slices: number[] = [];
    const large = (path: string, size: number): GatheredFile => {
      const log = file(path, "");
      Object.defineProperty(log.file, "size", { value: size });
      vi.spyOn(log.file, "slice").mockImplementation((from = 0, end = 0) => {
        slices.push(end - from);
        return new Blob([""]);
      });
      return log;
    };
    const seen: [number, number][] = [];
    const { unread } = await lookThroughLogs([large("a.log", 2 ** 31), large("b.log", 1 << 30), large("c.log", 10)], (read, of) => {
      seen.push([read, of]);
      return true;
    });
    expect(Math.max(...slices)).toBeLessThan((4 << 20) + 100);
    expect(unread).toEqual(["c.log"]);
    expect(seen.at(-1)).toEqual([2 ** 31, 2 ** 31]);
  });

  it("are not read on where something else was dropped meanwhile", async () => {
    const log = file("a.log", noise(20 << 20), printed(1));
    const onProgress = vi.fn(() => false);
    const { files } = await lookThroughLogs([log], onProgress);
    expect(onProgress).toHaveBeenCalledTimes(1);
    expect(files).toEqual([log]);
  });
});
