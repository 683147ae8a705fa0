import type { GatheredFile } from "./gather";

const ARCHIVE = /\.(zip|tar|tar\.gz|tgz)$/i;
const JSON_FILE = /\.json$/i;
const DUMP = /(^|\/)(dump|debug)\.json$/i;
const LOG = /\.(log|txt)$/i;
const DATABASE = /\.vis\.db$/i;
// Tables between the stages of an RL loop, small and needed whole: tensors of a dump lie in a folder of their own below the rank.
const KEY_DATA = /(^|\/)([^/]+\/step_?\d+\/((rank_?\d*|(proc|pid)_?\d+)\/)?(micro_step_?\d+\/)?[^/]+|prob_(diff|mask)_step_?\d+)\.npy$/i;
const REQUESTS = /(^|\/)(dispatch|update_actor)_log\.jsonl$/i;
const CONFIGURATION = /\.ya?ml$/i;
const LARGEST_CONFIGURATION = 256 * 1024;
const TENSOR = /\.(pt|npy|bin|safetensors)$/i;

export interface Selection {
  /** What goes up. */
  readonly send: readonly GatheredFile[];
  readonly tensors: readonly GatheredFile[];
  readonly other: readonly GatheredFile[];
  /** What the run is called: the folder that was dropped, or the archive without its ending. */
  readonly name: string;
}

/**
 * Json files and archives are sent, the key data of an RL run with its request logs and configuration, of a log no more than that, and without a dump among them the
 * database that msprobe graph_visualize made of one. Tensors stay unless they are asked for: they are a thousand times the size of the
 * statistics. Hidden files and what an operating system adds (`__MACOSX`) are never sent.
 */
export function select(files: readonly GatheredFile[], withTensors = false): Selection {
  const send: GatheredFile[] = [];
  const tensors: GatheredFile[] = [];
  const other: GatheredFile[] = [];
  const databases: GatheredFile[] = [];
  for (const file of files) {
    if (isHidden(file.path)) other.push(file);
    else if (ARCHIVE.test(file.path) || JSON_FILE.test(file.path) || isOfALoop(file)) send.push(file);
    else if (TENSOR.test(file.path)) tensors.push(file);
    else if (DATABASE.test(file.path)) databases.push(file);
    else other.push(file);
  }
  const holdsDump = send.some(({ path }) => ARCHIVE.test(path) || DUMP.test(path));
  (holdsDump ? other : send).push(...databases);
  const name = nameOf(send);
  if (withTensors) return { send: [...send, ...tensors], tensors: [], other, name };
  return { send, tensors, other, name };
}

/** Key data, request logs and a configuration of an RL run: a YAML file, or a log in which one was found (`logs.ts`). */
function isOfALoop({ path, file, cutFrom }: GatheredFile): boolean {
  if (cutFrom !== undefined) return true;
  return KEY_DATA.test(path) || REQUESTS.test(path) || (CONFIGURATION.test(path) && file.size <= LARGEST_CONFIGURATION);
}

export function isHidden(path: string): boolean {
  return path.split("/").some((part) => part.startsWith(".") || part === "__MACOSX");
}

function nameOf(files: readonly GatheredFile[]): string {
  const [first] = files;
  if (first === undefined) return "";
  const [top, ...below] = first.path.split("/");
  return (below.length > 0 ? top : top?.replace(ARCHIVE, "").replace(JSON_FILE, "").replace(DATABASE, "").replace(LOG, "")) ?? first.path;
}

export function sizeOf(files: readonly GatheredFile[]): number {
  return files.reduce((sum, { file }) => sum + file.size, 0);
}
