import { useSyncExternalStore } from "react";

/** What a screen reader is told besides what it can find: one polite line, replaced by the next. */
let line = "";
const listeners = new Set<() => void>();

export function announce(text: string): void {
  // The same text twice in a row would not be read again; a no-break space makes it another one.
  line = text === line ? `${text}\u00a0` : text;
  for (const listener of listeners) listener();
}

export function useAnnouncement(): string {
  return useSyncExternalStore(
    (listener) => {
      listeners.add(listener);
      return () => listeners.delete(listener);
    },
    () => line,
  );
}
