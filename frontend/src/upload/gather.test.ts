import { describe, expect, it } from "vitest";
import { chosen, walk } from "./gather";

/** A folder as browsers give it: at most a hundred entries a call, then none. */
function folder(name: string, children: FileSystemEntry[]): FileSystemEntry {
  return {
    name,
    isFile: false,
    isDirectory: true,
    createReader: () => {
      let given = 0;
      return {
        readEntries: (resolve: (entries: FileSystemEntry[]) => void) => {
          resolve(children.slice(given, given + 100));
          given += 100;
        },
      };
    },
  } as unknown as FileSystemEntry;
}

function file(name: string, content = "x"): FileSystemEntry {
  return {
    name,
    isFile: true,
    isDirectory: false,
    file: (resolve: (file: File) => void) => resolve(new File([content], name)),
  } as unknown as FileSystemEntry;
}

describe("what was dropped", () => {
  it("is walked to the last of a thousand files, though a browser gives a hundred at a time", async () => {
    const many = Array.from({ length: 1034 }, (_, index) => file(`${index}.json`));
    const found = await walk([folder("train", many)]);
    expect(found).toHaveLength(1034);
  });

  it("keeps paths below the folder that was dropped", async () => {
    const tree = folder("train", [folder("step0", [folder("rank0", [file("dump.json"), file("stack.json")])])]);
    expect((await walk([tree])).map(({ path }) => path)).toEqual(["train/step0/rank0/dump.json", "train/step0/rank0/stack.json"]);
  });

  it("may be loose files", async () => {
    expect((await walk([new File(["{}"], "dump.json")])).map(({ path }) => path)).toEqual(["dump.json"]);
  });

  it("says how far it is while a large folder is read", async () => {
    const counts: number[] = [];
    await walk(
      [
        folder(
          "train",
          Array.from({ length: 450 }, (_, index) => file(`${index}.json`)),
        ),
      ],
      (count) => counts.push(count),
    );
    expect(counts).toEqual([200, 400, 450]);
  });

  it("fails as a whole when a part of it cannot be read", async () => {
    const broken = { name: "a.json", isFile: true, file: (_: unknown, reject: (error: Error) => void) => reject(new Error("gone")) };
    await expect(walk([folder("train", [broken as unknown as FileSystemEntry])])).rejects.toThrow("gone");
  });
});

describe("what was chosen", () => {
  it("has the path below the chosen folder, or its name alone", () => {
    const inFolder = new File(["{}"], "dump.json");
    Object.defineProperty(inFolder, "webkitRelativePath", { value: "train/step0/dump.json" });
    expect(chosen([inFolder, new File([""], "a.zip")]).map(({ path }) => path)).toEqual(["a.zip", "train/step0/dump.json"]);
  });
});
