import type { GatheredFile } from "./gather";
import { isHidden } from "./select";

/** A trainer's log may hold its configuration; the content decides, not the name. */
const LOG = /\.(log|txt)$/i;
/** How verl begins to print its configuration: Python's way of writing a dict. */
const PRINTED = "{'actor_rollout_ref'";
/** Read at a time: what the page holds of a log, whatever its size. */
const SLICE = 4 << 20;
/** Of a log, and of all logs of a drop together, that much is looked through; the server reads as far. */
const LARGEST = 1 << 30;
const LARGEST_TOGETHER = 2 * LARGEST;
/** A log as small as this is sent as it is. */
const WHOLE = 1 << 20;
/** Of a larger one its beginning is sent, where a launch script shows its environment, and what follows where a configuration begins. */
const HEAD = 64 << 10;
const STRETCH = 512 << 10;
/** A log that several runs wrote holds several configurations, of which the last whole one counts. */
const MOST = 4;
const LONGEST_LINE = 4 << 10;

export interface Logs {
  /** All files, with the logs that hold a configuration cut down to it. */
  readonly files: readonly GatheredFile[];
  /** Logs that were not looked through, for there is too much of them. */
  readonly unread: readonly string[];
}

/** `read` of `of` bytes have been looked through; answers whether to go on. */
export type LookProgress = (read: number, of: number) => boolean;

export function isLog({ path }: GatheredFile): boolean {
  return LOG.test(path) && !isHidden(path);
}

/** Looks through the logs among the files for configurations that verl printed. A training folder is full of other text. */
export async function lookThroughLogs(files: readonly GatheredFile[], onProgress: LookProgress = () => true): Promise<Logs> {
  let left = LARGEST_TOGETHER;
  let read = 0;
  const unread: string[] = [];
  const found = new Map<GatheredFile, GatheredFile>();
  const logs = files.filter(isLog);
  const of = Math.min(
    logs.reduce((sum, { file }) => sum + Math.min(file.size, LARGEST), 0),
    LARGEST_TOGETHER,
  );
  for (const log of logs) {
    const size = Math.min(log.file.size, LARGEST);
    if (size > left) {
      unread.push(log.path);
      continue;
    }
    left -= size;
    const places = await placesIn(log.file, size, (step) => {
      read += step;
      return onProgress(read, of);
    });
    if (places === null) return { files, unread };
    if (places.length > 0) found.set(log, await cutDown(log, places));
  }
  return { files: files.map((file) => found.get(file) ?? file), unread };
}

/** Where in the file configurations begin; null where nobody wants to know any more. */
async function placesIn(file: File, size: number, onRead: (step: number) => boolean): Promise<readonly number[] | null> {
  const places: number[] = [];
  // A byte is a character here: places in the text are places in the file.
  const decoder = new TextDecoder("latin1");
  const overlap = PRINTED.length - 1;
  for (let from = 0; from < size; from += SLICE) {
    const end = Math.min(from + SLICE, size);
    const text = decoder.decode(await file.slice(Math.max(from - overlap, 0), end).arrayBuffer());
    for (let at = text.indexOf(PRINTED); at >= 0; at = text.indexOf(PRINTED, at + 1)) places.push(Math.max(from - overlap, 0) + at);
    if (!onRead(end - from)) return null;
  }
  return places;
}

async function cutDown(log: GatheredFile, places: readonly number[]): Promise<GatheredFile> {
  const { file, path } = log;
  if (file.size <= WHOLE) return { file, path, cutFrom: file.size };
  const stretches: [number, number][] = [[0, HEAD]];
  for (const place of places.slice(-MOST)) {
    const from = await lineStart(file, place);
    const end = Math.min(place + STRETCH, file.size);
    const last = stretches[stretches.length - 1] as [number, number];
    if (from <= last[1]) last[1] = Math.max(last[1], end);
    else stretches.push([from, end]);
  }
  // A line end between them, so that no line is made of two.
  const parts = stretches.flatMap(([from, end]) => [file.slice(from, end), "\n"]);
  return { file: new File(parts, file.name, { lastModified: file.lastModified }), path, cutFrom: file.size };
}

/** The name of the process stands before every line; which lines are of one configuration is told by it. */
async function lineStart(file: File, place: number): Promise<number> {
  const from = Math.max(place - LONGEST_LINE, 0);
  const before = new TextDecoder("latin1").decode(await file.slice(from, place).arrayBuffer());
  return from + before.lastIndexOf("\n") + 1;
}
