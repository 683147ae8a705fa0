import { cleanup, renderHook } from "@testing-library/react";
import { describe, expect, it, vi } from "vitest";
import { type Command, keysText, matches, registeredCommands, useCommands } from "./commands";

function command(id: string, keys: string, run = vi.fn()): Command & { run: ReturnType<typeof vi.fn> } {
  return { id, title: id, group: "page", keys: [keys], run };
}

function press(key: string, target: EventTarget = document.body, init: KeyboardEventInit = {}) {
  target.dispatchEvent(new KeyboardEvent("keydown", { key, bubbles: true, cancelable: true, ...init }));
}

describe("keys", () => {
  const event = (key: string, modifiers: Partial<Record<"ctrlKey" | "metaKey" | "altKey" | "shiftKey", boolean>> = {}) => ({
    key,
    ctrlKey: false,
    metaKey: false,
    altKey: false,
    shiftKey: false,
    ...modifiers,
  });

  it("match as they are typed", () => {
    expect(matches("n", event("n"))).toBe(true);
    expect(matches("n", event("N", { shiftKey: true }))).toBe(false);
    expect(matches("Shift+N", event("N", { shiftKey: true }))).toBe(true);
    expect(matches("?", event("?", { shiftKey: true }))).toBe(true);
    expect(matches("ArrowDown", event("ArrowDown", { shiftKey: true }))).toBe(false);
  });

  it("take Cmd for Ctrl, and leave the browser its own", () => {
    expect(matches("Ctrl+K", event("k", { ctrlKey: true }))).toBe(true);
    expect(matches("Ctrl+K", event("k", { metaKey: true }))).toBe(true);
    expect(matches("n", event("n", { ctrlKey: true }))).toBe(false);
  });

  it("are written for a person", () => {
    expect([keysText("Ctrl+K"), keysText("ArrowDown"), keysText("+"), keysText("Ctrl++")]).toEqual(["Ctrl K", "↓", "+", "Ctrl +"]);
  });
});

describe("registered commands", () => {
  it("run by their key while they are mounted, and not after", () => {
    const next = command("next", "n");
    renderHook(() => useCommands([next]));
    press("n");
    expect(next.run).toHaveBeenCalledTimes(1);
    cleanup();
    press("n");
    expect(next.run).toHaveBeenCalledTimes(1);
    expect(registeredCommands()).toEqual([]);
  });

  it("give a key to whoever registered last", () => {
    const page = command("page", "n");
    const panel = command("panel", "n");
    renderHook(() => useCommands([page]));
    renderHook(() => useCommands([panel]));
    press("n");
    expect([page.run, panel.run].map((run) => run.mock.calls.length)).toEqual([0, 1]);
  });

  it("rest while the reader types, except those with Ctrl", () => {
    const next = command("next", "n");
    const palette = command("palette", "Ctrl+K");
    renderHook(() => useCommands([next, palette]));
    const field = document.body.appendChild(document.createElement("input"));
    press("n", field);
    press("k", field, { ctrlKey: true });
    field.remove();
    expect([next.run, palette.run].map((run) => run.mock.calls.length)).toEqual([0, 1]);
  });

  it("rest behind an open dialog", () => {
    const next = command("next", "n");
    renderHook(() => useCommands([next]));
    const dialog = document.body.appendChild(document.createElement("dialog"));
    dialog.setAttribute("open", "");
    press("n");
    dialog.remove();
    expect(next.run).not.toHaveBeenCalled();
  });
});
