import { describe, expect, it } from "vitest";
import { pairStacks, readFrame } from "./stacks";

const torch =
  "File /opt/venv/lib/python3.11/site-packages/torch/nn/modules/module.py, line 1747, in _call_impl, \n return forward_call(*args, **kwargs)";
const own = (line: number, root = "/workspace/rl") =>
  `File ${root}/trainer.py, line ${line}, in compute_log_prob, \n out = self.actor(input_ids)`;

describe("stacks", () => {
  it("reads a frame as msprobe writes it", () => {
    expect(readFrame(torch)).toMatchObject({
      line: "1747",
      function: "_call_impl",
      code: "return forward_call(*args, **kwargs)",
      framework: true,
    });
    expect(readFrame(own(3))).toMatchObject({ file: "/workspace/rl/trainer.py", function: "compute_log_prob", framework: false });
  });

  it("keeps a frame it cannot read as text", () => {
    expect(readFrame("<built-in method matmul>")).toMatchObject({ function: "", text: "<built-in method matmul>", framework: false });
  });

  it("folds the framework's frames and takes line numbers and install paths for no difference", () => {
    const pair = pairStacks([torch, own(3)], [own(80, "/home/other")]);
    expect(pair.differing).toBe(0);
    expect(pair.folded).toBe(1);
  });

  it("counts frames that only one side has", () => {
    const rollout = "File /workspace/rl/rollout.py, line 9, in generate, \n self.engine.generate()";
    expect(pairStacks([own(3)], [rollout, own(3)]).differing).toBe(1);
    expect(pairStacks([own(3)], [rollout, own(3)]).right[0]?.only).toBe(true);
  });
});
