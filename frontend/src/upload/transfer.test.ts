import { afterEach, beforeEach, describe, expect, it, vi } from "vitest";
import { RequestError, UNREACHABLE } from "../api/problem";
import type { GatheredFile } from "./gather";
import { type FileSender, type SenderEvents, Transfer } from "./transfer";

interface FakeSender extends FileSender, SenderEvents {
  readonly path: string;
  running: boolean;
  discarded: boolean;
}

/** A transfer of files of these sizes, over senders that do what the test says. */
function setup(sizes: readonly number[]) {
  const senders: FakeSender[] = [];
  const states: string[] = [];
  const files: GatheredFile[] = sizes.map((size, index) => ({
    path: `${index}.json`,
    file: new File(["x".repeat(size)], `${index}.json`),
  }));
  const transfer: Transfer = new Transfer(
    files,
    ({ path }, events) => {
      const sender: FakeSender = {
        ...events,
        path,
        running: false,
        discarded: false,
        start: () => {
          sender.running = true;
        },
        stop: () => {
          sender.running = false;
        },
        discard: () => {
          sender.discarded = true;
        },
      };
      senders.push(sender);
      return sender;
    },
    () => {
      const { state } = transfer.view();
      if (states.at(-1) !== state) states.push(state);
    },
  );
  const sender = (index: number): FakeSender => {
    const found = senders[index];
    if (found === undefined) throw new Error(`no sender ${index}`);
    return found;
  };
  const finish = (index: number) => {
    sender(index).running = false;
    sender(index).onDone(`id-${sender(index).path}`);
  };
  return { transfer, senders, sender, finish, states };
}

const lost = new RequestError(0, UNREACHABLE);

describe("files on their way", () => {
  beforeEach(() => vi.useFakeTimers());
  afterEach(() => vi.useRealTimers());

  it("go up a few at a time, and are done when all are", () => {
    const { transfer, senders, finish, states } = setup([1, 1, 1, 1, 1, 1]);
    transfer.start();
    expect(senders).toHaveLength(4);
    for (let index = 0; index < 6; index += 1) finish(index);
    expect(states).toEqual(["sending", "done"]);
    expect(transfer.ids).toEqual(["id-0.json", "id-1.json", "id-2.json", "id-3.json", "id-4.json", "id-5.json"]);
  });

  it("count bytes and tell speed and time left", () => {
    const { transfer, sender } = setup([4000]);
    transfer.start();
    for (let second = 0; second <= 2; second += 0.25) {
      sender(0).onProgress(second * 1000, false);
      vi.advanceTimersByTime(250);
    }
    const view = transfer.view();
    expect([view.sent, view.total]).toEqual([2000, 4000]);
    expect(view.speed).toBeCloseTo(1000, 0);
    expect(view.secondsLeft).toBeCloseTo(2, 1);
  });

  it("do not count what was on the server already as speed", () => {
    const { transfer, sender } = setup([10_000]);
    transfer.start();
    vi.advanceTimersByTime(1000);
    sender(0).onProgress(9000, true);
    vi.advanceTimersByTime(1000);
    expect(transfer.view()).toMatchObject({ resumed: 9000, sent: 9000, speed: 0 });
  });

  it("pause and go on with the same senders", () => {
    const { transfer, senders, sender, finish, states } = setup([5, 5]);
    transfer.start();
    finish(0);
    transfer.pause();
    expect(sender(1).running).toBe(false);
    transfer.resume();
    expect(sender(1).running).toBe(true);
    expect(senders).toHaveLength(2);
    finish(1);
    expect(states).toEqual(["sending", "paused", "sending", "done"]);
  });

  it("wait out a lost connection, longer each time, and go on by themselves", () => {
    const { transfer, sender, states } = setup([5]);
    transfer.start();
    sender(0).onError(lost);
    expect(transfer.view()).toMatchObject({ state: "offline", retryIn: 1 });
    vi.advanceTimersByTime(1250);
    expect(sender(0).running).toBe(true);
    sender(0).onError(lost);
    expect(transfer.view().retryIn).toBe(2);
    vi.advanceTimersByTime(1000);
    expect(transfer.view().state).toBe("offline");
    vi.advanceTimersByTime(1250);
    expect(states).toEqual(["sending", "offline", "sending", "offline", "sending"]);
  });

  it("begin with short waits again once a byte got through", () => {
    const { transfer, sender } = setup([5]);
    transfer.start();
    for (let failure = 0; failure < 6; failure += 1) {
      sender(0).onError(lost);
      vi.advanceTimersByTime(20_000);
    }
    sender(0).onProgress(2, false);
    sender(0).onError(lost);
    expect(transfer.view().retryIn).toBe(1);
  });

  it("go on at once when the browser is online again", () => {
    const { transfer, sender } = setup([5]);
    transfer.start();
    for (let failure = 0; failure < 6; failure += 1) {
      sender(0).onError(lost);
      if (failure < 5) vi.advanceTimersByTime(20_000);
    }
    expect(transfer.view().state).toBe("offline");
    window.dispatchEvent(new Event("online"));
    expect(transfer.view().state).toBe("sending");
  });

  it("say that a line which died without a word is lost, and try anew", () => {
    const { transfer, sender, states } = setup([5]);
    transfer.start();
    sender(0).onProgress(2, false);
    vi.advanceTimersByTime(4500);
    expect(transfer.view()).toMatchObject({ state: "sending", stalled: false, sent: 2 });
    vi.advanceTimersByTime(1000);
    expect(transfer.view()).toMatchObject({ state: "sending", stalled: true, sent: 2 });
    vi.advanceTimersByTime(15_000);
    expect(transfer.view()).toMatchObject({ state: "offline", sent: 2 });
    expect(sender(0).running).toBe(false);
    vi.advanceTimersByTime(1250);
    expect(sender(0).running).toBe(true);
    expect(transfer.view()).toMatchObject({ state: "sending", stalled: true });
    sender(0).onProgress(3, false);
    expect(transfer.view().stalled).toBe(false);
    expect(states).toEqual(["sending", "offline", "sending"]);
    transfer.discard();
  });

  it("leave a server that has every byte more time to answer", () => {
    const { transfer, sender } = setup([5]);
    transfer.start();
    sender(0).onProgress(5, false);
    vi.advanceTimersByTime(14_000);
    expect(transfer.view()).toMatchObject({ state: "sending", stalled: false });
    vi.advanceTimersByTime(2000);
    expect(transfer.view()).toMatchObject({ state: "sending", stalled: true });
    vi.advanceTimersByTime(44_500);
    expect(transfer.view().state).toBe("offline");
    transfer.discard();
  });

  it("take a busy or restarting server for a lost connection", () => {
    for (const status of [409, 423, 429, 500, 503]) {
      const { transfer, sender } = setup([5]);
      transfer.start();
      sender(0).onError(new RequestError(status, UNREACHABLE));
      expect([status, transfer.view().state]).toEqual([status, "offline"]);
      transfer.discard();
    }
  });

  it("fail with the server's refusal, and stop everything else", () => {
    const { transfer, sender, states } = setup([5, 5]);
    transfer.start();
    const problem = { code: "upload_too_large", params: { limit: 3 }, message: "A file may have at most 3 bytes." };
    sender(0).onError(new RequestError(413, problem));
    sender(1).onError(lost);
    expect(transfer.view().problem).toEqual(problem);
    expect(sender(1).running).toBe(false);
    expect(states).toEqual(["sending", "failed"]);
  });

  it("let the server forget what was sent when they are removed", () => {
    const { transfer, senders } = setup([5, 5]);
    transfer.start();
    transfer.discard();
    expect(senders.every(({ discarded, running }) => discarded && !running)).toBe(true);
  });
});
