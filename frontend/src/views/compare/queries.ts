import { keepPreviousData, queryOptions, useQuery } from "@tanstack/react-query";
import { useSyncExternalStore } from "react";
import { problemOf, RequestError, UNREACHABLE } from "../../api/problem";
import type { NodeDetail } from "../../api/types";
import { decodeTree, type Tree } from "../../model/tree";

/** What the workbench loads: the tree once, a row in full when it is chosen. */

function base(slug: string, part: number | null): string {
  const comparison = `/api/v1/comparisons/${encodeURIComponent(slug)}`;
  return part === null ? comparison : `${comparison}/parts/${part}`;
}

async function answer(address: string, signal: AbortSignal): Promise<Response> {
  let response: Response;
  try {
    response = await window.fetch(address, { signal });
  } catch (error) {
    if (error instanceof DOMException && error.name === "AbortError") throw error;
    throw new RequestError(0, UNREACHABLE);
  }
  if (response.ok) return response;
  throw new RequestError(response.status, problemOf(response.status, await response.json().catch(() => null)));
}

/** Bytes of the tree as they arrive; `of` is null where the server compresses on the way and no length holds. */
export interface Arrived {
  readonly bytes: number;
}

let arrived: Arrived = { bytes: 0 };
const listeners = new Set<() => void>();

function report(bytes: number): void {
  arrived = { bytes };
  for (const listener of listeners) listener();
}

export function useArrived(): Arrived {
  return useSyncExternalStore(
    (listener) => {
      listeners.add(listener);
      return () => listeners.delete(listener);
    },
    () => arrived,
  );
}

async function readAll(response: Response): Promise<ArrayBuffer> {
  const reader = response.body?.getReader();
  if (reader === undefined) return response.arrayBuffer();
  const chunks: Uint8Array[] = [];
  let length = 0;
  for (;;) {
    const { done, value } = await reader.read();
    if (done) break;
    chunks.push(value);
    length += value.length;
    report(length);
  }
  const whole = new Uint8Array(length);
  let offset = 0;
  for (const chunk of chunks) {
    whole.set(chunk, offset);
    offset += chunk.length;
  }
  return whole.buffer;
}

export function treeQuery(slug: string, part: number | null, enabled: boolean) {
  return queryOptions({
    queryKey: ["tree", slug, part],
    queryFn: async ({ signal }): Promise<Tree> => {
      report(0);
      return decodeTree(await readAll(await answer(`${base(slug, part)}/tree/`, signal)));
    },
    enabled,
    // A finished comparison never changes, and half a megabyte is dear to fetch twice.
    staleTime: Number.POSITIVE_INFINITY,
    gcTime: 5 * 60_000,
    // Typed arrays are compared by identity: structural sharing would walk 100k numbers and find nothing.
    structuralSharing: false,
  });
}

export function useTree(slug: string, part: number | null, enabled: boolean) {
  return useQuery(treeQuery(slug, part, enabled));
}

export function nodeQuery(slug: string, part: number | null, row: number) {
  return queryOptions({
    queryKey: ["node", slug, part, row],
    queryFn: async ({ signal }): Promise<NodeDetail> =>
      (await answer(`${base(slug, part)}/nodes/${row}/`, signal)).json() as Promise<NodeDetail>,
    enabled: row >= 0,
    staleTime: Number.POSITIVE_INFINITY,
  });
}

/** The row before stays on screen until the next one is there: no flash while a reader walks down the tree. */
export function useNode(slug: string, part: number | null, row: number) {
  return useQuery({ ...nodeQuery(slug, part, row), placeholderData: keepPreviousData });
}
