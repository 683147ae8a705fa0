import { asRequestError } from "../api/problem";
import { createRun } from "../api/queries";
import type { ApiProblem } from "../api/types";
import type { Side } from "../ui/side";
import { type GatheredFile, walk } from "./gather";
import { isLog, type Logs, lookThroughLogs } from "./logs";
import { type Peek, peek } from "./peek";
import { type Selection, select, sizeOf } from "./select";
import { type SenderFactory, Transfer, type TransferView } from "./transfer";
import { forgetUploads, tusSender } from "./tus-sender";

/**
 * One side of the landing page. It goes from empty through looking at what was dropped, sending and making the run to a run, whose state the
 * page then asks the server for; `resumed` are the bytes that an earlier attempt had sent. A refusal on the way leaves the side as `refused`, with its name, until it is replaced.
 */
export type SideView =
  | { readonly phase: "empty" }
  | { readonly phase: "looking"; readonly count: number; readonly logs?: { readonly read: number; readonly of: number } }
  | { readonly phase: "sending"; readonly name: string; readonly transfer: TransferView; readonly about: Contents }
  | { readonly phase: "creating"; readonly name: string; readonly about: Contents; readonly resumed: number }
  | { readonly phase: "run"; readonly name: string; readonly id: string; readonly about: Contents | null; readonly resumed?: number }
  | { readonly phase: "lost"; readonly name: string; readonly sent: number; readonly total: number }
  | { readonly phase: "refused"; readonly name: string; readonly problem: ApiProblem; readonly about: Contents | null };

/** What is sent and what is not, and what the dump says about itself before the server has read it. */
export interface Contents {
  readonly files: number;
  readonly bytes: number;
  readonly tensors: { readonly count: number; readonly bytes: number };
  readonly other: readonly string[];
  /** Logs that hold a configuration: how large they are, and what of them is sent. */
  readonly logs: readonly { readonly path: string; readonly size: number; readonly sent: number }[];
  /** Logs that nobody looked through. */
  readonly unread: readonly string[];
  readonly peek: Peek | null;
}

export interface SideServices {
  readonly makeSender: SenderFactory;
  readonly createRun: (uploads: readonly string[], name: string) => Promise<{ readonly id: string }>;
  readonly forget: (files: readonly GatheredFile[]) => Promise<void>;
}

export class SideUpload {
  private readonly side: Side;
  private readonly services: SideServices;
  private readonly listeners = new Set<() => void>();
  private current: SideView = { phase: "empty" };
  private files: readonly GatheredFile[] = [];
  private withTensors = false;
  private transfer: Transfer | null = null;
  /** Each drop gets a number: what an earlier one still has under way is ignored. */
  private turn = 0;

  constructor(side: Side, services: SideServices) {
    this.side = side;
    this.services = services;
    this.current = this.remembered();
  }

  readonly subscribe = (listener: () => void): (() => void) => {
    this.listeners.add(listener);
    return () => this.listeners.delete(listener);
  };

  readonly view = (): SideView => this.current;

  /** Takes entries of a drop; whatever the side held before is replaced. */
  async drop(entries: readonly (FileSystemEntry | File)[]): Promise<void> {
    this.clear();
    const turn = this.turn;
    this.publish({ phase: "looking", count: 0 });
    try {
      const files = await walk(entries, (count) => turn === this.turn && this.publish({ phase: "looking", count }));
      if (turn === this.turn) await this.take(files);
    } catch (error) {
      // The browser could not read on: a folder that vanished, a file without permission.
      const detail = error instanceof Error ? error.message : String(error);
      if (turn === this.turn) this.refuse("", { code: "folder_unreadable", params: { detail }, message: detail }, null);
    }
  }

  /** Takes files whose paths are known, and begins to send. */
  async take(files: readonly GatheredFile[], withTensors = false): Promise<void> {
    this.clear();
    const turn = this.turn;
    this.files = files;
    this.withTensors = withTensors;
    const looked = await this.look(files, turn);
    if (looked === null || turn !== this.turn) return;
    const selection = select(looked.files, withTensors);
    const about = await contents(selection, looked.unread);
    if (turn !== this.turn) return;
    if (selection.send.length === 0) {
      this.refuse(selectedName(files), emptyProblem(files), about);
      return;
    }
    const transfer = new Transfer(selection.send, this.services.makeSender, () => this.onTransfer(turn, transfer, selection, about));
    this.transfer = transfer;
    transfer.start();
  }

  /** Looks through logs, if there are any, and says how far it is; null where the browser could not read them. */
  private async look(files: readonly GatheredFile[], turn: number): Promise<Logs | null> {
    if (!files.some(isLog)) return { files, unread: [] };
    const { length: count } = files;
    this.publish({ phase: "looking", count });
    try {
      return await lookThroughLogs(files, (read, of) => {
        if (turn === this.turn) this.publish({ phase: "looking", count, logs: { read, of } });
        return turn === this.turn;
      });
    } catch (error) {
      const detail = error instanceof Error ? error.message : String(error);
      if (turn === this.turn) this.refuse(selectedName(files), { code: "folder_unreadable", params: { detail }, message: detail }, null);
      return null;
    }
  }

  pause(): void {
    this.transfer?.pause();
  }

  resume(): void {
    this.transfer?.resume();
  }

  /** Tries again what was refused, with the same files. */
  async again(): Promise<void> {
    await this.take(this.files, this.withTensors);
  }

  /** Sends the same files again as another run, their tensors too; the server keeps equal content once. */
  async sendTensors(): Promise<void> {
    await this.take(this.files, true);
  }

  /** What was dropped, as long as this page holds it: after a reload it does not. */
  held(): readonly GatheredFile[] {
    return this.files;
  }

  remove(): void {
    this.transfer?.discard();
    this.clear();
    this.publish({ phase: "empty" });
  }

  /** Takes over what another side holds; the caller gives it in turn what this one held. */
  put(view: SideView, files: readonly GatheredFile[] = []): void {
    this.clear();
    this.files = files;
    this.publish(view);
  }

  private clear(): void {
    this.turn += 1;
    this.transfer?.pause();
    this.transfer = null;
  }

  private onTransfer(turn: number, transfer: Transfer, selection: Selection, about: Contents): void {
    if (turn !== this.turn) return;
    const view = transfer.view();
    const { name } = selection;
    if (view.state === "failed" && view.problem !== null) this.refuse(name, view.problem, about);
    else if (view.state === "done") void this.create(turn, transfer.ids, selection, about, view.resumed);
    else this.publish({ phase: "sending", name, transfer: view, about });
  }

  private async create(turn: number, uploads: readonly string[], selection: Selection, about: Contents, resumed: number): Promise<void> {
    const { name } = selection;
    this.publish({ phase: "creating", name, about, resumed });
    for (let attempt = 0; ; attempt += 1) {
      try {
        const run = await this.services.createRun(uploads, name);
        if (turn !== this.turn) return;
        this.publish({ phase: "run", name, id: run.id, about, resumed });
        await this.services.forget(selection.send);
        return;
      } catch (error) {
        const refusal = asRequestError(error);
        if (turn !== this.turn) return;
        if (!refusal.passing) {
          this.refuse(name, refusal.problem, about);
          return;
        }
        // The bytes are safe on the server; only the last word is missing.
        await new Promise((resolve) => setTimeout(resolve, Math.min(8000, 1000 * 2 ** attempt)));
        if (turn !== this.turn) return;
      }
    }
  }

  private refuse(name: string, problem: ApiProblem, about: Contents | null): void {
    this.publish({ phase: "refused", name, problem, about });
  }

  private publish(view: SideView): void {
    this.current = view;
    this.remember(view);
    for (const listener of this.listeners) listener();
  }

  private get memory(): string {
    return `probe.side.${this.side}`;
  }

  /** What the tab shows again after a reload: a run as it is, an upload as lost until the same files are chosen again. */
  private remember(view: SideView): void {
    try {
      if (view.phase === "run") sessionStorage.setItem(this.memory, JSON.stringify({ id: view.id, name: view.name }));
      else if (view.phase === "sending") {
        const { sent, total } = view.transfer;
        sessionStorage.setItem(this.memory, JSON.stringify({ name: view.name, sent, total }));
      } else if (view.phase === "empty" || view.phase === "refused") sessionStorage.removeItem(this.memory);
    } catch {
      // Storage is forbidden: a reload then begins with an empty side.
    }
  }

  private remembered(): SideView {
    try {
      const { id, name, sent, total } = JSON.parse(sessionStorage.getItem(this.memory) ?? "{}");
      if (typeof name !== "string") return { phase: "empty" };
      if (typeof id === "string") return { phase: "run", id, name, about: null };
      if (typeof sent === "number" && typeof total === "number") return { phase: "lost", name, sent, total };
    } catch {
      // Nothing that was remembered can be read.
    }
    return { phase: "empty" };
  }
}

function selectedName(files: readonly GatheredFile[]): string {
  return files[0]?.path.split("/")[0] ?? "";
}

function emptyProblem(files: readonly GatheredFile[]): ApiProblem {
  const code = files.length === 0 ? "folder_empty" : "nothing_to_send";
  return { code, params: { files: files.length, name: selectedName(files) }, message: code };
}

async function contents(selection: Selection, unread: readonly string[]): Promise<Contents> {
  return {
    files: selection.send.length,
    bytes: sizeOf(selection.send),
    tensors: { count: selection.tensors.length, bytes: sizeOf(selection.tensors) },
    other: selection.other.map(({ path }) => path).filter((path) => !unread.includes(path)),
    logs: selection.send.flatMap(({ path, file, cutFrom }) => (cutFrom === undefined ? [] : [{ path, size: cutFrom, sent: file.size }])),
    unread,
    // A guess that cannot be made is none; the server reads the dump in any case.
    peek: await peek(selection.send).catch(() => null),
  };
}

function onServer(side: Side): SideUpload {
  return new SideUpload(side, {
    makeSender: tusSender(side),
    createRun,
    forget: (files) => forgetUploads(side, files),
  });
}

/** A side that can change its place: nothing of it is on its way. */
export function isSettled(view: SideView): boolean {
  return view.phase === "empty" || view.phase === "run";
}

/** Exchanges two runs, or moves one to the empty side. */
export function swapSides(left: SideUpload, right: SideUpload): void {
  const [onLeft, onRight] = [left.view(), right.view()];
  if (!isSettled(onLeft) || !isSettled(onRight)) return;
  const [leftFiles, rightFiles] = [left.held(), right.held()];
  left.put(onRight, rightFiles);
  right.put(onLeft, leftFiles);
}

/** Outside React: an upload goes on while the reader looks at something else. */
export const sides = { left: onServer("left"), right: onServer("right") } as const;
