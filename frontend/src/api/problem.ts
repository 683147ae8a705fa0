import type { ApiProblem } from "./types";

/** What a call threw: the server's refusal, or that no answer came. */
export class RequestError extends Error {
  override readonly name = "RequestError";
  readonly status: number;
  readonly problem: ApiProblem;

  constructor(status: number, problem: ApiProblem) {
    super(problem.message);
    this.status = status;
    this.problem = problem;
  }

  /** No answer at all, or one that says "later": worth trying again by itself. */
  get passing(): boolean {
    return this.status === 0 || this.status === 429 || this.status === 502 || this.status === 503 || this.status === 504;
  }
}

export const UNREACHABLE: ApiProblem = { code: "unreachable", params: {}, message: "The server does not answer." };

function isProblem(value: unknown): value is ApiProblem {
  return typeof value === "object" && value !== null && typeof (value as ApiProblem).code === "string";
}

/** The refusal in a body, whatever stands there: a proxy in between may answer with a page of its own. */
export function problemOf(status: number, body: unknown): ApiProblem {
  if (isProblem(body)) return { ...body, params: body.params ?? {}, message: body.message ?? body.code };
  if (status === 0) return UNREACHABLE;
  return { code: `http_${status}`, params: { status }, message: `The server answered ${status}.` };
}

export function asRequestError(error: unknown): RequestError {
  return error instanceof RequestError ? error : new RequestError(0, UNREACHABLE);
}
