import { readFileSync } from "node:fs";
import { describe, expect, it } from "vitest";

const lock = readFileSync("package-lock.json", "utf-8");

describe("the lock of the packages", () => {
  it("names no host, so that every reader's own mirror serves it", () => {
    expect(lock).not.toContain('"resolved"');
  });

  it("holds no package that cannot be installed", () => {
    // vite 8.4.0 lists it as optional; it does not exist, and `npm ci` then refuses the whole lock.
    expect(lock).not.toContain("napi-windows-process-start-time");
    expect(JSON.parse(lock).packages["node_modules/vite"].version).toBe("8.3.8");
  });
});
