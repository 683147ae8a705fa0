import { useSyncExternalStore } from "react";
import { decodeView, encodeView, type ViewState } from "./url-state";

/**
 * The address bar as the one place of the view state. A change is seen by every reader at once and written to the address a moment later:
 * browsers refuse more than about a hundred history entries a half minute, and scrolling makes more.
 */
const WRITE_DELAY_MS = 150;

let current: ViewState = decodeView(window.location.hash);
let page = window.location.pathname;
let pending: number | undefined;
const listeners = new Set<() => void>();

function publish(next: ViewState): void {
  current = next;
  for (const listener of listeners) listener();
}

/** The address of a state on this page. */
export function addressOf(state: ViewState): string {
  const fragment = encodeView(state);
  return window.location.pathname + window.location.search + (fragment === "" ? "" : `#${fragment}`);
}

/** Writes a waiting change now: before a link is copied or the page is left. */
export function flushViewState(): void {
  if (pending === undefined) return;
  window.clearTimeout(pending);
  pending = undefined;
  if (window.location.pathname !== page) return;
  window.history.replaceState(window.history.state, "", addressOf(current));
}

/** `push` where the reader would expect Back to undo it (a part, a tab), `replace` for everything that moves along. */
export function changeView(change: Partial<ViewState>, how: "replace" | "push" = "replace"): void {
  if (how === "push") flushViewState();
  publish({ ...viewState(), ...change });
  if (how === "push") window.history.pushState(window.history.state, "", addressOf(current));
  else if (pending === undefined) pending = window.setTimeout(flushViewState, WRITE_DELAY_MS);
}

/** Takes the state from the address again: after Back or a typed link. */
function readAddress(): void {
  page = window.location.pathname;
  window.clearTimeout(pending);
  pending = undefined;
  publish(decodeView(window.location.hash));
}

window.addEventListener("popstate", readAddress);
window.addEventListener("hashchange", readAddress);
window.addEventListener("pagehide", flushViewState);

export function viewState(): ViewState {
  // Another page without a reload: its address says what to show there, and a change that waits belongs to the page that was left.
  if (window.location.pathname !== page) {
    page = window.location.pathname;
    window.clearTimeout(pending);
    pending = undefined;
    current = decodeView(window.location.hash);
  }
  return current;
}

function subscribe(listener: () => void): () => void {
  listeners.add(listener);
  return () => listeners.delete(listener);
}

export function useViewState(): readonly [ViewState, typeof changeView] {
  return [useSyncExternalStore(subscribe, viewState), changeView];
}
