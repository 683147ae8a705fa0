import { afterEach, describe, expect, it, vi } from "vitest";
import { RequestError } from "../api/problem";
import { type SideServices, SideUpload, type SideView, swapSides } from "./side";
import type { SenderEvents } from "./transfer";

const made: SideUpload[] = [];

afterEach(() => {
  // What is still on its way would go on telling the storage how far it is.
  for (const upload of made.splice(0)) upload.remove();
  sessionStorage.clear();
  vi.useRealTimers();
});

const dump = { path: "fsdp-1130/step0/rank0/dump.json", file: new File(['{"task": "statistics", "level": "L0"}'], "dump.json") };

function setup(services: Partial<SideServices> = {}) {
  const sent: SenderEvents[] = [];
  const discarded: string[] = [];
  const forgotten: string[] = [];
  const upload = new SideUpload("left", {
    makeSender: ({ path }, events) => {
      sent.push(events);
      return { start: () => {}, stop: () => {}, discard: () => discarded.push(path) };
    },
    createRun: async () => ({ id: "run-1" }),
    forget: async (files) => {
      forgotten.push(...files.map(({ path }) => path));
    },
    ...services,
  });
  made.push(upload);
  const phases: string[] = [];
  upload.subscribe(() => {
    const { phase } = upload.view();
    if (phases.at(-1) !== phase) phases.push(phase);
  });
  return { upload, sent, discarded, forgotten, phases };
}

async function until(upload: SideUpload, phase: SideView["phase"]) {
  await vi.waitFor(() => expect(upload.view().phase).toBe(phase));
}

describe("one side of the landing page", () => {
  it("goes from a drop to a run, and forgets the half-sent uploads then", async () => {
    const { upload, sent, forgotten, phases } = setup();
    await upload.drop([dump.file]);
    await until(upload, "sending");
    sent[0]?.onDone("upload-1");
    await until(upload, "run");
    expect(upload.view()).toMatchObject({ id: "run-1", name: "dump" });
    expect(phases).toEqual(["looking", "sending", "creating", "run"]);
    await vi.waitFor(() => expect(forgotten).toEqual(["dump.json"]));
  });

  it("gives the server the uploads in the order of the files", async () => {
    const createRun = vi.fn(async () => ({ id: "run-1" }));
    const { upload, sent } = setup({ createRun });
    await upload.take([dump, { path: "fsdp-1130/step0/rank1/dump.json", file: dump.file }]);
    sent[1]?.onDone("b");
    sent[0]?.onDone("a");
    await until(upload, "run");
    expect(createRun).toHaveBeenCalledWith(["a", "b"], "fsdp-1130");
  });

  it("says what it found of the dump before a byte arrived", async () => {
    const { upload } = setup();
    await upload.take([dump]);
    expect(upload.view()).toMatchObject({ phase: "sending", about: { files: 1, peek: { task: "statistics", level: "L0", steps: 1 } } });
  });

  it("leaves tensors until they are asked for, then sends the whole folder again", async () => {
    const tensor = { path: "fsdp-1130/step0/rank0/dump_tensor_data/a.pt", file: new File(["1234"], "a.pt") };
    const { upload } = setup();
    await upload.take([dump, tensor]);
    expect(upload.view()).toMatchObject({ about: { files: 1, tensors: { count: 1, bytes: 4 } } });
    await upload.sendTensors();
    expect(upload.view()).toMatchObject({ phase: "sending", name: "fsdp-1130", about: { files: 2, tensors: { count: 0 } } });
  });

  it("refuses a folder without a dump or archive in a sentence, and takes another in its place", async () => {
    const { upload, sent } = setup();
    await upload.take([{ path: "notes/a.txt", file: new File(["a"], "a.txt") }]);
    expect(upload.view()).toMatchObject({ phase: "refused", name: "notes", problem: { code: "nothing_to_send", params: { files: 1 } } });
    await upload.take([]);
    expect(upload.view()).toMatchObject({ problem: { code: "folder_empty" } });
    await upload.take([dump]);
    sent[0]?.onDone("a");
    await until(upload, "run");
  });

  it("looks through logs first, says how far, and sends of a large one what holds the configuration", async () => {
    const printed = "{'actor_rollout_ref': {'actor': {'lr': 1e-06}}}\n";
    const log = { path: "run/train.log", file: new File([printed, "step:1\n".repeat(900_000)], "train.log") };
    const notes = { path: "run/notes.txt", file: new File(["x"], "notes.txt") };
    const { upload, phases } = setup();
    const looked: unknown[] = [];
    upload.subscribe(() => {
      const view = upload.view();
      if (view.phase === "looking" && view.logs !== undefined) looked.push(view.logs);
    });
    await upload.take([log, notes]);
    const of = log.file.size + 1;
    expect(looked).toEqual([
      { read: 4 << 20, of },
      { read: log.file.size, of },
      { read: of, of },
    ]);
    expect(phases).toEqual(["looking", "sending"]);
    expect(upload.view()).toMatchObject({
      name: "run",
      about: { files: 1, logs: [{ path: "run/train.log", size: log.file.size }], other: ["run/notes.txt"], unread: [] },
    });
    const view = upload.view();
    const about = view.phase === "sending" ? view.about : null;
    expect(about?.bytes).toBe(about?.logs[0]?.sent);
    expect(about?.bytes).toBeLessThan(600_000);
  });

  it("says that a log without a configuration is nothing to send", async () => {
    const { upload } = setup();
    await upload.take([{ path: "train.log", file: new File(["step:1"], "train.log") }]);
    expect(upload.view()).toMatchObject({ phase: "refused", name: "train.log", problem: { code: "nothing_to_send" } });
  });

  it("says so where the browser cannot read a log", async () => {
    const log = { path: "train.log", file: new File(["step:1"], "train.log") };
    vi.spyOn(log.file, "slice").mockImplementation(() => {
      throw new Error("gone");
    });
    const { upload } = setup();
    await upload.take([log]);
    expect(upload.view()).toMatchObject({ phase: "refused", problem: { code: "folder_unreadable", params: { detail: "gone" } } });
  });

  it("keeps its name when the server refuses the run", async () => {
    const problem = { code: "disk_full", params: {}, message: "The disk of the server is full." };
    const { upload, sent } = setup({
      createRun: async () => {
        throw new RequestError(507, problem);
      },
    });
    await upload.take([dump]);
    sent[0]?.onDone("a");
    await until(upload, "refused");
    expect(upload.view()).toMatchObject({ name: "fsdp-1130", problem });
  });

  it("asks again when no answer came for the run: the bytes are there already", async () => {
    let attempts = 0;
    const { upload, sent } = setup({
      createRun: async () => {
        attempts += 1;
        if (attempts === 1) throw new TypeError("fetch failed");
        return { id: "run-2" };
      },
    });
    await upload.take([dump]);
    sent[0]?.onDone("a");
    await vi.waitFor(() => expect(upload.view()).toMatchObject({ phase: "run", id: "run-2" }), { timeout: 3000 });
  });

  it("ignores what an earlier drop still has under way", async () => {
    const { upload, sent } = setup();
    await upload.take([dump]);
    await upload.take([{ path: "second/dump.json", file: new File(["{}"], "dump.json") }]);
    sent[0]?.onDone("first");
    expect(upload.view()).toMatchObject({ phase: "sending", name: "second" });
  });

  it("forgets everything when it is removed", async () => {
    const { upload, discarded } = setup();
    await upload.take([dump]);
    upload.remove();
    expect(upload.view()).toEqual({ phase: "empty" });
    expect(discarded).toEqual([dump.path]);
  });

  it("shows its run again after a reload, and says how far an upload was", async () => {
    const first = setup();
    await first.upload.take([dump]);
    first.sent[0]?.onProgress(7, false);
    first.upload.pause();
    expect(setup().upload.view()).toEqual({ phase: "lost", name: "fsdp-1130", sent: 7, total: dump.file.size });
    first.upload.resume();
    first.sent[0]?.onDone("a");
    await until(first.upload, "run");
    expect(setup().upload.view()).toEqual({ phase: "run", id: "run-1", name: "fsdp-1130", about: null });
  });

  it("does not stumble over what somebody else left in the storage", () => {
    sessionStorage.setItem("probe.side.left", "{nonsense");
    expect(setup().upload.view()).toEqual({ phase: "empty" });
  });

  it("changes places with the other side, but not while something is on its way", async () => {
    const left = setup();
    const right = setup();
    left.upload.put({ phase: "run", id: "a", name: "a", about: null });
    swapSides(left.upload, right.upload);
    expect([left.upload.view().phase, right.upload.view()]).toMatchObject(["empty", { id: "a" }]);
    await left.upload.take([dump]);
    swapSides(left.upload, right.upload);
    expect(left.upload.view().phase).toBe("sending");
  });
});
