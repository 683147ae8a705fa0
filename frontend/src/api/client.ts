import createClient from "openapi-fetch";

import { authorization } from "./authorization";
import { problemOf, RequestError, UNREACHABLE } from "./problem";
import type { paths } from "./schema";

/** The same origin always: a page that someone serves elsewhere must not be able to name another server. */
/** So long a question waits for an answer to begin: a server that hangs, or a line that died without a word, would never end it. */
const PATIENCE_MS = 15_000;

// The fetch of the moment and not the one of load time, so that a test can stand in for the network.
export const client = createClient<paths>({
  baseUrl: window.location.origin,
  fetch: (request) => {
    const known = authorization();
    if (known !== null && !request.headers.has("Authorization")) request.headers.set("Authorization", known);
    return request.method === "GET" ? patiently(request) : window.fetch(request);
  },
});

/** What begins to arrive may take its time. */
async function patiently(request: Request): Promise<Response> {
  const patience = new AbortController();
  const timer = setTimeout(() => patience.abort(new DOMException("no answer", "TimeoutError")), PATIENCE_MS);
  try {
    return await window.fetch(request, { signal: AbortSignal.any([request.signal, patience.signal]) });
  } finally {
    clearTimeout(timer);
  }
}

interface Answer {
  data?: unknown;
  error?: unknown;
  response: Response;
}

/** The body of an answer as types.ts names it, or a RequestError. */
export async function unwrap<Body>(call: Promise<Answer>): Promise<Body> {
  let answer: Answer;
  try {
    answer = await call;
  } catch (error) {
    // Given up by the caller, which knows; everything else means that no answer came.
    if (error instanceof DOMException && error.name === "AbortError") throw error;
    throw new RequestError(0, UNREACHABLE);
  }
  if (!answer.response.ok) throw new RequestError(answer.response.status, problemOf(answer.response.status, answer.error));
  return answer.data as Body;
}
