import { describe, expect, it } from "vitest";
import { peek } from "./peek";
import { select } from "./select";

function files(contents: Record<string, string>) {
  return Object.entries(contents).map(([path, content]) => ({ path, file: new File([content], path.split("/").at(-1) ?? path) }));
}

describe("what is sent", () => {
  it("are json files and archives; tensors and the rest stay", () => {
    const { send, tensors, other } = select(
      files({
        "t/step0/rank0/dump.json": "{}",
        "t/step0/rank0/dump_tensor_data/Module.a.forward.0.output.0.pt": "x",
        "t/notes.txt": "",
        "t/more.tar.gz": "",
      }),
    );
    expect(send.map(({ path }) => path)).toEqual(["t/step0/rank0/dump.json", "t/more.tar.gz"]);
    expect(tensors.map(({ path }) => path)).toEqual(["t/step0/rank0/dump_tensor_data/Module.a.forward.0.output.0.pt"]);
    expect(other.map(({ path }) => path)).toEqual(["t/notes.txt"]);
  });

  it("are the tables, request logs and YAML of an RL run, however they are laid out", () => {
    const { send, tensors, other } = select(
      files({
        "r/data/loss/step0/rank0/micro_step0/loss.npy": "x",
        "r/data/prompts/step_0/rank_0/prompts.11.npy": "x",
        "r/data/loss/step0/loss.npy": "x",
        "r/prob_diff_step_3.npy": "x",
        "r/4711/dispatch_log.jsonl": "{}",
        "r/99/update_actor_log.jsonl": "{}",
        "r/grpo.yaml": "rl: {}",
        "r/large.yml": "x".repeat(300_000),
        "r/actor_update/step0/rank0/dump_tensor_data/a.npy": "x",
        "r/other.jsonl": "{}",
        "r/weights.npy": "x",
      }),
    );
    expect(send.map(({ path }) => path)).toEqual([
      "r/data/loss/step0/rank0/micro_step0/loss.npy",
      "r/data/prompts/step_0/rank_0/prompts.11.npy",
      "r/data/loss/step0/loss.npy",
      "r/prob_diff_step_3.npy",
      "r/4711/dispatch_log.jsonl",
      "r/99/update_actor_log.jsonl",
      "r/grpo.yaml",
    ]);
    expect(tensors.map(({ path }) => path)).toEqual(["r/actor_update/step0/rank0/dump_tensor_data/a.npy", "r/weights.npy"]);
    expect(other.map(({ path }) => path)).toEqual(["r/large.yml", "r/other.jsonl"]);
  });

  it("is the graph database where no dump is beside it, and else the dump alone", () => {
    const alone = select(files({ "out/build_20260101.vis.db": "x", "out/notes.txt": "" }));
    expect(alone.send.map(({ path }) => path)).toEqual(["out/build_20260101.vis.db"]);
    expect(select(files({ "build.vis.db": "x" })).name).toBe("build");
    const beside = select(files({ "out/build.vis.db": "x", "out/dump.json": "{}" }));
    expect(beside.send.map(({ path }) => path)).toEqual(["out/dump.json"]);
    expect(beside.other.map(({ path }) => path)).toEqual(["out/build.vis.db"]);
  });

  it("is nothing hidden and nothing that an operating system added", () => {
    const { send } = select(files({ "t/.git/a.json": "", "t/__MACOSX/dump.json": "", "t/._dump.json": "", "t/dump.json": "{}" }));
    expect(send.map(({ path }) => path)).toEqual(["t/dump.json"]);
  });

  it("is called after the folder or the archive", () => {
    expect(select(files({ "fsdp-1130/step0/dump.json": "" })).name).toBe("fsdp-1130");
    expect(select(files({ "fsdp-1130.tar.gz": "" })).name).toBe("fsdp-1130");
    expect(select(files({ "dump.json": "" })).name).toBe("dump");
  });
});

describe("a look into a dump before the server has it", () => {
  const dump = `{"task": "statistics", "level": "L0", "framework": "pytorch", "data": {"Module.a.forward.0": {"input_args":
    [{"dtype": "torch.int64"}, {"dtype": "torch.bfloat16"}, {"dtype": "torch.bfloat16"}, {"dtype": "torch.float32"}]}`;

  it("reads its head and counts steps and ranks by their folders", async () => {
    const seen = await peek(
      files({
        "t/step0/rank0/dump.json": dump,
        "t/step0/rank1/dump.json": dump,
        "t/step1/rank0/dump.json": dump,
        "t/step1/rank1/dump.json": dump,
        "t/step0/rank0/stack.json": "{}",
      }),
    );
    expect(seen).toEqual({
      task: "statistics",
      level: "L0",
      framework: "pytorch",
      dtype: "bfloat16",
      steps: 2,
      ranks: 2,
      dumps: 4,
      construct: false,
      stack: true,
    });
  });

  it("says nothing of an archive", async () => {
    expect(await peek(files({ "a.zip": "PK" }))).toBeNull();
  });

  it("says nothing that is not there", async () => {
    expect(await peek(files({ "dump.json": '{"data": ' }))).toMatchObject({ task: null, level: null, dtype: null, steps: 1, ranks: 1 });
  });
});
