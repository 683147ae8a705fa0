import { RequestError, UNREACHABLE } from "../api/problem";
import type { ApiProblem } from "../api/types";
import type { GatheredFile } from "./gather";

/** One file on its way. `start` after `stop` or after an error goes on where the server stands. */
export interface FileSender {
  start(): void;
  /** Stops sending and keeps what arrived. */
  stop(): void;
  /** Stops, and lets the server forget what arrived. */
  discard(): void;
}

export interface SenderEvents {
  /** Bytes of this file that are on the server; `resumed` on the first report where some were there before. */
  onProgress: (sent: number, resumed: boolean) => void;
  /** The server has all of it and calls it by this id. */
  onDone: (id: string) => void;
  onError: (error: RequestError) => void;
}

export type SenderFactory = (file: GatheredFile, events: SenderEvents) => FileSender;

export type TransferState = "sending" | "paused" | "offline" | "done" | "failed";

export interface TransferView {
  readonly state: TransferState;
  readonly sent: number;
  readonly total: number;
  readonly filesDone: number;
  readonly files: number;
  /** Bytes a second over the last seconds, null until there is something to say. */
  readonly speed: number | null;
  readonly secondsLeft: number | null;
  /** Bytes that the server held from an earlier attempt. */
  readonly resumed: number;
  /** While offline: seconds until the next attempt. */
  readonly retryIn: number | null;
  /** While sending: nothing got through for a while, or not yet after a failure. */
  readonly stalled: boolean;
  readonly problem: ApiProblem | null;
}

/** Small files wait for round trips, not for bandwidth; more than a few at once would only compete. */
const AT_ONCE = 4;
const SPEED_WINDOW_MS = 4000;
const TICK_MS = 250;
/** A line that dies without a word, or a server that hangs, ends no request: so long without a byte is said, and so long is tried anew. */
const STALLED_MS = 5000;
const GIVEN_UP_MS = 20_000;
/** All bytes are handed over, and only the answer is missing: the server may be at work on what it got. */
const UNANSWERED_FACTOR = 3;
const RETRY_SECONDS = [1, 2, 4, 8, 15];

interface Lane {
  readonly file: GatheredFile;
  sender: FileSender | null;
  sent: number;
  id: string | null;
}

/**
 * Several files of one run on their way to the server. A lost connection is no failure: the transfer waits, says when it tries again, and
 * goes on by itself, at once when the browser says that it is online. Only a refusal fails it.
 */
export class Transfer {
  private readonly lanes: Lane[];
  private readonly makeSender: SenderFactory;
  private readonly onChange: () => void;
  private state: TransferState = "sending";
  private problem: ApiProblem | null = null;
  private resumed = 0;
  private failures = 0;
  private retryAt = 0;
  private movedAt = 0;
  private samples: { at: number; sent: number }[] = [];
  private ticker: ReturnType<typeof setInterval> | undefined;
  private readonly online = () => this.tryAgain();

  constructor(files: readonly GatheredFile[], makeSender: SenderFactory, onChange: () => void) {
    this.lanes = files.map((file) => ({ file, sender: null, sent: 0, id: null }));
    this.makeSender = makeSender;
    this.onChange = onChange;
  }

  start(): void {
    window.addEventListener("online", this.online);
    this.ticker = setInterval(() => this.tick(), TICK_MS);
    this.enter("sending");
    this.fill();
  }

  pause(): void {
    if (this.state !== "sending" && this.state !== "offline") return;
    this.halt();
    this.enter("paused");
  }

  resume(): void {
    if (this.state !== "paused") return;
    this.enter("sending");
    this.fill();
  }

  /** Gives up and lets the server forget the bytes. */
  discard(): void {
    this.close();
    for (const lane of this.lanes) lane.sender?.discard();
  }

  /** Ids of the uploads in the order of the files; only once it is done. */
  get ids(): readonly string[] {
    return this.lanes.map(({ id }) => id ?? "");
  }

  view(): TransferView {
    const total = this.lanes.reduce((sum, { file }) => sum + file.file.size, 0);
    const sent = this.sent();
    // Handed to the network but not yet acknowledged: what the last bytes' speed is nobody needs to know.
    const speed = this.state === "sending" && sent < total ? this.speed() : null;
    return {
      state: this.state,
      sent,
      total,
      filesDone: this.lanes.filter(({ id }) => id !== null).length,
      files: this.lanes.length,
      speed,
      secondsLeft: speed !== null && speed > 0 ? (total - sent) / speed : null,
      resumed: this.resumed,
      retryIn: this.state === "offline" ? Math.max(0, Math.ceil((this.retryAt - Date.now()) / 1000)) : null,
      stalled: this.state === "sending" && (this.failures > 0 || this.standsStill(STALLED_MS)),
      problem: this.problem,
    };
  }

  private standsStill(milliseconds: number): boolean {
    const handed = [...this.running].every(({ file, sent }) => sent >= file.file.size);
    return Date.now() - this.movedAt >= milliseconds * (handed ? UNANSWERED_FACTOR : 1);
  }

  private sent(): number {
    return this.lanes.reduce((sum, lane) => sum + lane.sent, 0);
  }

  private enter(state: TransferState): void {
    this.state = state;
    this.samples = [];
    this.movedAt = Date.now();
    this.onChange();
  }

  /** Keeps a few files going until all are sent. */
  private fill(): void {
    if (this.state !== "sending") return;
    const waiting = this.lanes.filter(({ id }) => id === null);
    if (waiting.length === 0) {
      this.close();
      this.enter("done");
      return;
    }
    for (const lane of waiting.slice(0, AT_ONCE)) {
      if (!this.running.has(lane)) this.launch(lane);
    }
  }

  private readonly running = new Set<Lane>();

  private launch(lane: Lane): void {
    this.running.add(lane);
    lane.sender ??= this.makeSender(lane.file, {
      onProgress: (sent, resumed) => {
        if (resumed) {
          this.resumed += sent;
          // What was there before took no time now.
          this.samples = [];
        }
        if (sent > lane.sent) this.failures = 0;
        if (sent !== lane.sent) this.movedAt = Date.now();
        lane.sent = sent;
      },
      onDone: (id) => {
        lane.id = id;
        lane.sent = lane.file.file.size;
        this.failures = 0;
        this.movedAt = Date.now();
        this.running.delete(lane);
        this.fill();
      },
      onError: (error) => this.onError(error),
    });
    lane.sender.start();
  }

  private onError(error: RequestError): void {
    if (this.state !== "sending") return;
    this.halt();
    if (error.passing || error.status >= 500 || error.status === 409 || error.status === 423) {
      const wait = RETRY_SECONDS[Math.min(this.failures, RETRY_SECONDS.length - 1)] ?? 15;
      this.failures += 1;
      this.retryAt = Date.now() + wait * 1000;
      this.enter("offline");
    } else {
      this.problem = error.problem;
      this.close();
      this.enter("failed");
    }
  }

  private tryAgain(): void {
    if (this.state !== "offline") return;
    this.enter("sending");
    this.fill();
  }

  private halt(): void {
    for (const lane of this.running) lane.sender?.stop();
    this.running.clear();
  }

  private close(): void {
    this.halt();
    clearInterval(this.ticker);
    window.removeEventListener("online", this.online);
  }

  private tick(): void {
    if (this.state === "offline" && Date.now() >= this.retryAt) this.tryAgain();
    if (this.state === "sending" && this.standsStill(GIVEN_UP_MS)) this.onError(new RequestError(0, UNREACHABLE));
    if (this.state === "sending") {
      const now = Date.now();
      this.samples.push({ at: now, sent: this.sent() });
      this.samples = this.samples.filter(({ at }) => at >= now - SPEED_WINDOW_MS);
    }
    if (this.state !== "paused") this.onChange();
  }

  private speed(): number | null {
    const [first] = this.samples;
    const last = this.samples.at(-1);
    if (first === undefined || last === undefined || last.at - first.at < 2 * TICK_MS) return null;
    return ((last.sent - first.sent) / (last.at - first.at)) * 1000;
  }
}
