import { keepPreviousData, useQuery } from "@tanstack/react-query";
import { client, unwrap } from "./client";
import type { KeyTables, LoopDocument, TableValues } from "./run-verdict";

/** Key data that were compared never change, so what was asked for once stands. */
const STAYS = { staleTime: Number.POSITIVE_INFINITY } as const;

/** What the verdict will say of key data and configurations. */
export function useLoop(slug: string, enabled: boolean) {
  return useQuery({
    queryKey: ["loop", slug],
    queryFn: ({ signal }): Promise<LoopDocument> =>
      unwrap(client.GET("/api/v1/comparisons/{slug}/loop/", { params: { path: { slug } }, signal })),
    enabled,
    ...STAYS,
  });
}

/** The tables of one key with the numbers of each. */
export function useKeyTables(slug: string, n: number, enabled: boolean) {
  return useQuery({
    queryKey: ["key-data", slug, n],
    queryFn: ({ signal }): Promise<KeyTables> =>
      unwrap(client.GET("/api/v1/comparisons/{slug}/key-data/{n}/", { params: { path: { slug, n } }, signal })),
    enabled,
    ...STAYS,
  });
}

/** Up to 4096 values of one row of a table, side by side. */
export function useTableValues(slug: string, n: number, t: number, row: number, from: number) {
  return useQuery({
    queryKey: ["key-data", slug, n, t, row, from],
    queryFn: ({ signal }): Promise<TableValues> =>
      unwrap(
        client.GET("/api/v1/comparisons/{slug}/key-data/{n}/tables/{t}/", {
          params: { path: { slug, n, t }, query: { row, from } },
          signal,
        }),
      ),
    placeholderData: keepPreviousData,
    ...STAYS,
  });
}
