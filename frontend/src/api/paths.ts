import type { About, Comparison, ComparisonRow, Created, Page, Params, Role, Run } from "./types";

/** The calls of `/api/v1/` in the shape openapi-fetch reads. Only what the page calls; the server's schema has the rest. */

interface Json<Body> {
  content: { "application/json": Body };
  headers: Readonly<Record<string, unknown>>;
}
interface At<Path> {
  parameters: { query?: never; header?: never; path: Path; cookie?: never };
}
interface Sends<Body> {
  requestBody: { content: { "application/json": Body } };
}

export interface paths {
  "/api/v1/about/": {
    get: { responses: { 200: Json<About> } };
  };
  "/api/v1/runs/": {
    post: Sends<{ uploads: readonly string[]; name: string; role: Role | "auto" }> & { responses: { 201: Json<Created> } };
  };
  "/api/v1/runs/{id}/": {
    get: At<{ id: string }> & { responses: { 200: Json<Run> } };
  };
  "/api/v1/comparisons/": {
    get: {
      parameters: { query?: { search?: string; cursor?: string }; header?: never; path?: never; cookie?: never };
      responses: { 200: Json<Page<ComparisonRow>> };
    };
    post: Sends<{ left: string; right: string; options?: Params; name?: string }> & { responses: { 201: Json<Created> } };
  };
  "/api/v1/comparisons/{id}/": {
    get: At<{ id: string }> & { responses: { 200: Json<Comparison> } };
    patch: At<{ id: string }> & Sends<{ name?: string; tags?: readonly string[] }> & { responses: { 200: Json<Comparison> } };
  };
  "/api/v1/comparisons/{id}/cancel/": {
    post: At<{ id: string }> & { responses: { 200: Json<Comparison> } };
  };
  "/api/v1/comparisons/{id}/retry/": {
    post: At<{ id: string }> & { responses: { 200: Json<Comparison> } };
  };
}
