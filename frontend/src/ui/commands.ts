import { useEffect, useRef, useSyncExternalStore } from "react";
import type { Messages } from "../i18n";

/**
 * One list of what a page can do. A command with keys is a shortcut, a line in the key panel and a line in the palette at once, so the three
 * cannot disagree. A page registers its commands while it is mounted; the one registered last wins a key.
 */
export interface Command {
  readonly id: string;
  readonly title: string;
  readonly group: keyof Messages["palette"]["groups"];
  /** `n`, `Shift+N`, `Ctrl+K` (also Cmd on a Mac), `?`, `ArrowDown`, `Escape`: what KeyboardEvent.key says. */
  readonly keys?: readonly string[];
  /** Named in the key panel, left out of the palette: moving a selection is nothing to search for. */
  readonly keysOnly?: boolean;
  readonly run: () => void;
}

const layers = new Map<symbol, readonly Command[]>();
const listeners = new Set<() => void>();
let all: readonly Command[] = [];

function collect(): void {
  const byId = new Map<string, Command>();
  for (const layer of layers.values()) for (const command of layer) byId.set(command.id, command);
  all = [...byId.values()];
  for (const listener of listeners) listener();
}

/** Registers commands while the component is mounted. The list may be a new one at every render. */
export function useCommands(commands: readonly Command[]): void {
  const layer = useRef<symbol>(Symbol("commands"));
  useEffect(() => {
    layers.set(layer.current, commands);
    collect();
  }, [commands]);
  useEffect(() => {
    const key = layer.current;
    return () => {
      layers.delete(key);
      collect();
    };
  }, []);
}

function subscribe(listener: () => void): () => void {
  listeners.add(listener);
  return () => listeners.delete(listener);
}

export function registeredCommands(): readonly Command[] {
  return all;
}

export function useRegisteredCommands(): readonly Command[] {
  return useSyncExternalStore(subscribe, registeredCommands);
}

const TYPING = "input:not([type=checkbox], [type=radio], [type=button]), textarea, select, [contenteditable]:not([contenteditable=false])";

function isTyping(target: EventTarget | null): boolean {
  return target instanceof Element && target.closest(TYPING) !== null;
}

/** Whether a key event is the one that `keys` names. Letters are compared as written: `n` is not `Shift+N`. */
export function matches(keys: string, event: Pick<KeyboardEvent, "key" | "ctrlKey" | "metaKey" | "altKey" | "shiftKey">): boolean {
  const parts = keys.split(/\+(?=.)/);
  const key = parts.at(-1) ?? "";
  const wantsCtrl = parts.includes("Ctrl");
  if (wantsCtrl !== (event.ctrlKey || event.metaKey) || parts.includes("Alt") !== event.altKey) return false;
  if (parts.includes("Shift") && !event.shiftKey) return false;
  // A character that needs Shift to be typed (`?`, `N`) says so by itself; a named key does not.
  if (key.length > 1 && !parts.includes("Shift") && event.shiftKey) return false;
  return wantsCtrl ? event.key.toLowerCase() === key.toLowerCase() : event.key === key;
}

function onKeyDown(event: KeyboardEvent): void {
  if (event.defaultPrevented || event.isComposing) return;
  const plain = !(event.ctrlKey || event.metaKey);
  if (plain && (isTyping(event.target) || document.querySelector("dialog[open]") !== null)) return;
  for (let index = all.length - 1; index >= 0; index -= 1) {
    const command = all[index];
    if (command?.keys?.some((keys) => matches(keys, event))) {
      event.preventDefault();
      command.run();
      return;
    }
  }
}

window.addEventListener("keydown", onKeyDown);

const NAMES: Record<string, string> = {
  ArrowDown: "↓",
  ArrowUp: "↑",
  ArrowLeft: "←",
  ArrowRight: "→",
  Escape: "Esc",
  PageDown: "Page ↓",
  PageUp: "Page ↑",
};

/** How a shortcut is written for a person: `Ctrl K`, `↓`. */
export function keysText(keys: string): string {
  return keys
    .split(/\+(?=.)/)
    .map((part) => NAMES[part] ?? part)
    .join(" ");
}
