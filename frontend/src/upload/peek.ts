import type { GatheredFile } from "./gather";

/** What can be said of a dump before the server has it: from paths, and from the first stretch of its first dump.json. */
export interface Peek {
  readonly task: string | null;
  readonly level: string | null;
  readonly framework: string | null;
  readonly dtype: string | null;
  readonly steps: number;
  readonly ranks: number;
  readonly dumps: number;
  readonly construct: boolean;
  readonly stack: boolean;
}

const HEAD_BYTES = 256 * 1024;

function fileName(path: string): string {
  return path.slice(path.lastIndexOf("/") + 1);
}

/** null where nothing can be seen from here: an archive. */
export async function peek(files: readonly GatheredFile[]): Promise<Peek | null> {
  const dumps = files.filter(({ path }) => fileName(path) === "dump.json");
  const [first] = dumps;
  if (first === undefined) return null;
  const head = await first.file.slice(0, HEAD_BYTES).text();
  const count = (pattern: RegExp) => new Set(dumps.map(({ path }) => pattern.exec(path)?.[1] ?? "")).size;
  return {
    task: member(head, "task"),
    level: member(head, "level"),
    framework: member(head, "framework"),
    dtype: dtypeOf(head),
    steps: count(/(?:^|\/)(step\d+)\//),
    ranks: count(/(?:^|\/)((?:rank|proc)\d*)\//),
    dumps: dumps.length,
    construct: files.some(({ path }) => fileName(path) === "construct.json"),
    stack: files.some(({ path }) => fileName(path) === "stack.json"),
  };
}

/** The first text member of that name; the header stands before the records. */
function member(head: string, name: string): string | null {
  return new RegExp(`"${name}"\\s*:\\s*"([^"\\\\]{1,40})"`).exec(head)?.[1] ?? null;
}

/** The floating dtype that stands most often in the head: token ids are integers and say nothing. */
function dtypeOf(head: string): string | null {
  const counts = new Map<string, number>();
  for (const [, dtype] of head.matchAll(/"dtype"\s*:\s*"(?:torch\.)?([a-z]*float\d*[a-z0-9_]*|BFloat16|Float\d\d)"/g)) {
    if (dtype !== undefined) counts.set(dtype, (counts.get(dtype) ?? 0) + 1);
  }
  return [...counts].sort((a, b) => b[1] - a[1])[0]?.[0] ?? null;
}
