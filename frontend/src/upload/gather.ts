/** A file and the path it has below what was dropped, with `/`: `train/step0/rank0/dump.json`, or `dump.json` alone. */
export interface GatheredFile {
  readonly file: File;
  readonly path: string;
  /** Of a log that holds a configuration: the bytes of the whole log, of which `file` is a part. */
  readonly cutFrom?: number;
}

/** A drop must be read before its event ends: this takes the entries out at once, and walks them afterwards. */
export function entriesOf(items: DataTransferItemList): readonly (FileSystemEntry | File)[] {
  const entries: (FileSystemEntry | File)[] = [];
  for (const item of items) {
    if (item.kind !== "file") continue;
    const entry = item.webkitGetAsEntry?.() ?? item.getAsFile();
    if (entry !== null) entries.push(entry);
  }
  return entries;
}

/** Everything below the entries, in the order of their names. `onCount` is told how many files were seen so far. */
export async function walk(
  entries: readonly (FileSystemEntry | File)[],
  onCount: (count: number) => void = () => {},
): Promise<GatheredFile[]> {
  const found: GatheredFile[] = [];
  for (const entry of entries) {
    if (entry instanceof File) found.push({ file: entry, path: entry.name });
    else await walkEntry(entry, "", found, onCount);
  }
  onCount(found.length);
  return sorted(found);
}

async function walkEntry(entry: FileSystemEntry, above: string, found: GatheredFile[], onCount: (count: number) => void): Promise<void> {
  const path = above === "" ? entry.name : `${above}/${entry.name}`;
  if (entry.isFile) {
    found.push({ file: await fileOf(entry as FileSystemFileEntry), path });
    if (found.length % 200 === 0) onCount(found.length);
    return;
  }
  for (const child of await childrenOf(entry as FileSystemDirectoryEntry)) await walkEntry(child, path, found, onCount);
}

function fileOf(entry: FileSystemFileEntry): Promise<File> {
  return new Promise((resolve, reject) => entry.file(resolve, reject));
}

/** A reader gives a hundred entries at a time and ends with none: one call would silently lose the rest of a large folder. */
async function childrenOf(directory: FileSystemDirectoryEntry): Promise<FileSystemEntry[]> {
  const reader = directory.createReader();
  const children: FileSystemEntry[] = [];
  for (;;) {
    const batch = await new Promise<FileSystemEntry[]>((resolve, reject) => reader.readEntries(resolve, reject));
    if (batch.length === 0) return children;
    children.push(...batch);
  }
}

/** What a file field holds: with `webkitdirectory` each file knows its path below the chosen folder. */
export function chosen(files: Iterable<File>): GatheredFile[] {
  return sorted([...files].map((file) => ({ file, path: file.webkitRelativePath || file.name })));
}

function sorted(files: GatheredFile[]): GatheredFile[] {
  return files.sort((a, b) => (a.path < b.path ? -1 : Number(a.path > b.path)));
}
