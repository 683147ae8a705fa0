/** Stacks as the dump holds them, innermost first: which frames are the framework's, which differ between the sides. */

export interface Frame {
  readonly file: string;
  readonly line: string;
  readonly function: string;
  readonly code: string;
  readonly text: string;
  readonly framework: boolean;
}

export interface StackFrame extends Frame {
  /** No frame of the other side calls the same function of the same file. */
  readonly only: boolean;
}

export interface StackPair {
  readonly left: readonly StackFrame[];
  readonly right: readonly StackFrame[];
  readonly differing: number;
  readonly folded: number;
}

const FRAME = /^File\s+"?(.+?)"?,\s+line\s+(\d+),\s+in\s+([^,\s]+),?\s*(?:\\n|\n)?\s*(.*)$/s;
const FRAMEWORK =
  /(?:^|[\\/])(?:site-packages|dist-packages)[\\/]|[\\/](?:torch|vllm|vllm_ascend|sglang|transformers|megatron|mindspeed|torch_npu|deepspeed|ray|msprobe|accelerate)[\\/]|^<frozen/;

export function readFrame(text: string): Frame {
  const match = FRAME.exec(text.trim());
  const file = match?.[1] ?? "";
  return {
    file,
    line: match?.[2] ?? "",
    function: match?.[3] ?? "",
    code: (match?.[4] ?? "").trim(),
    text: text.trim(),
    framework: FRAMEWORK.test(file === "" ? text : file),
  };
}

function identity(frame: Frame): string {
  return frame.file === "" ? frame.text : `${frame.file.split(/[\\/]/).at(-1)}:${frame.function}`;
}

/** Line numbers and install paths differ between any two machines and say nothing: a frame is its file's name and its function. */
export function pairStacks(left: readonly string[], right: readonly string[]): StackPair {
  const [leftFrames, rightFrames] = [left.map(readFrame), right.map(readFrame)];
  const mark = (frames: readonly Frame[], others: readonly Frame[]): StackFrame[] => {
    const known = new Set(others.map(identity));
    return frames.map((frame) => ({ ...frame, only: !frame.framework && !known.has(identity(frame)) }));
  };
  const marked = { left: mark(leftFrames, rightFrames), right: mark(rightFrames, leftFrames) };
  const all = [...marked.left, ...marked.right];
  return { ...marked, differing: all.filter((frame) => frame.only).length, folded: all.filter((frame) => frame.framework).length };
}
