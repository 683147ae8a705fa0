import { keepPreviousData, type QueryClient, queryOptions, useInfiniteQuery, useQuery } from "@tanstack/react-query";
import { client, unwrap } from "./client";
import { asRequestError } from "./problem";
import type { About, Comparison, ComparisonRow, Created, Page, Params, PartVerdict, Run } from "./types";

/** Questions that a page asks again and again, and how often. One place, so that no two views poll the same thing at two rates. */

const FIRST_POLL_MS = 1000;
const LAST_POLL_MS = 3000;

/** 1 s at first, 3 s in the end: a short comparison is seen at once, a long one does not keep the server busy. */
export function pollDelay(answers: number): number {
  return Math.min(LAST_POLL_MS, FIRST_POLL_MS * 1.25 ** Math.max(0, answers - 3));
}

/** A refusal stands; a lost connection or a restarting server is asked again for as long as the page is open. */
export function retry(failures: number, error: unknown): boolean {
  const { passing, status } = asRequestError(error);
  return passing || (status >= 500 && failures < 2);
}

export const aboutQuery = queryOptions({
  queryKey: ["about"],
  queryFn: ({ signal }) => unwrap<About>(client.GET("/api/v1/about/", { signal })),
  staleTime: Number.POSITIVE_INFINITY,
});

export function useAbout() {
  return useQuery(aboutQuery);
}

export function comparisonQuery(slug: string) {
  return queryOptions({
    queryKey: ["comparison", slug],
    queryFn: ({ signal }): Promise<Comparison> => unwrap(client.GET("/api/v1/comparisons/{slug}/", { params: { path: { slug } }, signal })),
    refetchInterval: ({ state }) => (state.data !== undefined && !isOver(state.data) ? pollDelay(state.dataUpdateCount) : false),
  });
}

export function isOver(comparison: Pick<Comparison, "state">): boolean {
  return comparison.state !== "queued" && comparison.state !== "running";
}

export function useComparison(slug: string) {
  return useQuery(comparisonQuery(slug));
}

/** The verdict of one part of a run verdict. It is written with the tree, so there is none before the comparison is done. */
export function usePartVerdict(slug: string, part: number, enabled: boolean) {
  return useQuery({
    queryKey: ["part", slug, part],
    queryFn: ({ signal }): Promise<PartVerdict> =>
      unwrap(client.GET("/api/v1/comparisons/{slug}/parts/{n}/verdict.json", { params: { path: { slug, n: part } }, signal })),
    enabled,
    staleTime: Number.POSITIVE_INFINITY,
  });
}

export function useRun(id: string | null) {
  return useQuery({
    queryKey: ["run", id],
    queryFn: ({ signal }): Promise<Run> => unwrap(client.GET("/api/v1/runs/{slug}/", { params: { path: { slug: id ?? "" } }, signal })),
    enabled: id !== null,
    refetchInterval: ({ state }) => {
      const going = state.data !== undefined && state.data.state !== "ready" && state.data.state !== "failed";
      return going ? pollDelay(state.dataUpdateCount) : false;
    },
  });
}

/** The newest runs, to choose one from. Where the list is closed there is nothing to choose from, and a link does. */
export function useRuns() {
  return useQuery({
    queryKey: ["runs"],
    queryFn: ({ signal }): Promise<Page<Run>> => unwrap(client.GET("/api/v1/runs/", { signal })),
    staleTime: 10_000,
  });
}

/** The comparisons that use a run. The list is closed to other machines like every list. */
export function useComparisonsOfRun(run: string) {
  return useQuery({
    queryKey: ["comparisons", "of", run],
    queryFn: ({ signal }): Promise<Page<ComparisonRow>> =>
      unwrap(client.GET("/api/v1/comparisons/", { params: { query: { run } }, signal })),
  });
}

export async function deleteRun(queries: QueryClient, id: string): Promise<void> {
  await unwrap(client.DELETE("/api/v1/runs/{slug}/", { params: { path: { slug: id } } }));
  queries.removeQueries({ queryKey: ["run", id] });
}

/** The list follows while something in it runs, and looks again every half minute otherwise: teammates add to it. */
export function useComparisons(search: string) {
  return useInfiniteQuery({
    queryKey: ["comparisons", search],
    queryFn: ({ pageParam, signal }): Promise<Page<ComparisonRow>> => {
      const query = { ...(search === "" ? {} : { search }), ...(pageParam === null ? {} : { cursor: pageParam }) };
      return unwrap(client.GET("/api/v1/comparisons/", { params: { query }, signal }));
    },
    initialPageParam: null as string | null,
    getNextPageParam: (page) => page.next,
    placeholderData: keepPreviousData,
    refetchInterval: ({ state }) => {
      if (state.error !== null) return false;
      const running = state.data?.pages.some((page) => page.results.some((row) => !isOver(row))) ?? false;
      return running ? pollDelay(state.dataUpdateCount) : 30_000;
    },
  });
}

/** Which role a run has is the dump's to say; which side it stands on is the reader's, who put it there. */
/** What the server keeps of a name; a file's may be longer. */
const LONGEST_NAME = 200;

export function createRun(uploads: readonly string[], name: string): Promise<Created> {
  return unwrap(client.POST("/api/v1/runs/", { body: { uploads: [...uploads], name: name.slice(0, LONGEST_NAME), role: "auto" } }));
}

/** `previous`: the comparison of the same runs that this one was begun from. */
export function createComparison(left: string, right: string, options: Params = {}, previous: string | null = null): Promise<Created> {
  const begun = previous === null ? {} : { previous };
  return unwrap(client.POST("/api/v1/comparisons/", { body: { left, right, name: "", options, ...begun } }));
}

async function act(queries: QueryClient, slug: string, call: Promise<Comparison>): Promise<void> {
  await call;
  // Asked again and not taken from the answer: the list and the page then say the same.
  await queries.invalidateQueries({ queryKey: ["comparison", slug] });
  await queries.invalidateQueries({ queryKey: ["comparisons"] });
}

export function cancelComparison(queries: QueryClient, slug: string): Promise<void> {
  return act(queries, slug, unwrap(client.POST("/api/v1/comparisons/{slug}/cancel/", { params: { path: { slug } } })));
}

/** One failed part again; the verdict over the parts is made anew. */
export function retryPart(queries: QueryClient, slug: string, n: number): Promise<void> {
  return act(queries, slug, unwrap(client.POST("/api/v1/comparisons/{slug}/parts/{n}/retry/", { params: { path: { slug, n } } })));
}

export function retryComparison(queries: QueryClient, slug: string): Promise<void> {
  return act(queries, slug, unwrap(client.POST("/api/v1/comparisons/{slug}/retry/", { params: { path: { slug } } })));
}
