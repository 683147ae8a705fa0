import { cleanup } from "@testing-library/react";
import { afterEach } from "vitest";

// Unmounts what a test rendered: without vitest's globals the library cannot hook itself in.
afterEach(() => {
  cleanup();
  localStorage.clear();
});
