import type { Inventory } from "../api/types";
import type { Format, Messages } from "../i18n";

/** Short facts of a run in words, shared by the preflight card and the comparison's header. */

const DTYPES: Record<string, string> = { bfloat16: "bf16", float16: "fp16", half: "fp16", float32: "fp32", float: "fp32", float64: "fp64" };

/** `torch.bfloat16` → bf16; a name we do not know stays as it is. */
export function dtypeName(dtype: string): string {
  const plain = dtype.replace(/^torch\./, "");
  return DTYPES[plain.toLowerCase()] ?? plain;
}

export function taskName(task: string, t: Messages): string {
  return t.card.tasks[task] ?? task;
}

/** statistics, L0, bf16 */
export function dataLine(run: { task: string | null; level: string | null; dtype?: string | null | undefined }, t: Messages): string {
  const parts = [run.task === null ? null : taskName(run.task, t), run.level, run.dtype ? dtypeName(run.dtype) : null];
  return parts.filter((part) => part !== null && part !== "").join(t.common.comma);
}

/** 3 stages × 2 steps × 4 ranks; a dump that names no step or rank is one of each. */
export function extentLine(stages: number, steps: number, ranks: number, t: Messages, format: Format): string {
  const parts = [
    stages > 0 ? t.card.stages(stages, format.count(stages)) : null,
    t.card.steps(Math.max(1, steps), format.count(Math.max(1, steps))),
    t.card.ranks(Math.max(1, ranks), format.count(Math.max(1, ranks))),
  ];
  return parts.filter((part) => part !== null).join(" × ");
}

type Wrapped = Pick<Inventory, "wrapping" | "role">;

/** A trainer's run that also holds dumps of its rollout engine: the engine is a part of it and not what it runs in. */
function isPart({ wrapping, role }: Wrapped): boolean {
  return wrapping === "vLLM" && role === "train";
}

/** PyTorch, FSDP */
export function frameworkLine(framework: string, of: Wrapped | null, t: Messages): string {
  const name = t.card.frameworkNames[framework.toLowerCase()] ?? framework;
  if (of === null || of.wrapping === null) return name;
  return `${name}${t.common.comma}${isPart(of) ? t.card.inPart(of.wrapping) : of.wrapping}`;
}

/** FSDP, bf16: what stands beside a run's name in a header. */
export function headerFacts(inventory: Inventory | null, t: Messages): string {
  if (inventory === null) return "";
  return [isPart(inventory) ? null : inventory.wrapping, inventory.dtype ? dtypeName(inventory.dtype) : null]
    .filter(Boolean)
    .join(t.common.comma);
}
