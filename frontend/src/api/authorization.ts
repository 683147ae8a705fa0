/** The Authorization header of this browser, null where none was given. Kept in localStorage where that is allowed, else for this page. */

const KEY = "probe.authorization";
const listeners = new Set<() => void>();
let held: string | null = read();

function read(): string | null {
  try {
    return localStorage.getItem(KEY);
  } catch {
    return null;
  }
}

export function authorization(): string | null {
  return held;
}

export function keepAuthorization(value: string | null): void {
  held = value;
  try {
    if (value === null) localStorage.removeItem(KEY);
    else localStorage.setItem(KEY, value);
  } catch {
    // Storage is forbidden here: it holds until the page is left.
  }
  for (const listener of listeners) listener();
}

export function listenToAuthorization(listener: () => void): () => void {
  listeners.add(listener);
  return () => listeners.delete(listener);
}
