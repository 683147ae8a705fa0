import { useSyncExternalStore } from "react";

/** Which of the two panels that every page has is open. */
export type Panel = "palette" | "keys" | null;

let open: Panel = null;
const listeners = new Set<() => void>();

function show(panel: Panel): void {
  open = panel;
  for (const listener of listeners) listener();
}

export function openPalette(): void {
  show("palette");
}

export function openKeys(): void {
  show("keys");
}

export function closePanel(): void {
  show(null);
}

export function usePanel(): Panel {
  return useSyncExternalStore(
    (listener) => {
      listeners.add(listener);
      return () => listeners.delete(listener);
    },
    () => open,
  );
}
