import react from "@vitejs/plugin-react";
import { defineConfig } from "vitest/config";

// Django serves index.html at the page addresses and the rest of dist/ below STATIC_URL: names in assets/ carry a hash and never change.
export default defineConfig({
  base: "/static/",
  plugins: [react()],
  build: {
    outDir: "dist",
    assetsDir: "assets",
    // The page's policy allows no data: scripts, styles or fonts; a small file stays a file.
    assetsInlineLimit: 0,
    target: "es2023",
    sourcemap: false,
    chunkSizeWarningLimit: 700,
  },
  server: {
    proxy: Object.fromEntries(["/api", "/healthz", "/readyz"].map((path) => [path, "http://127.0.0.1:8000"])),
  },
  test: {
    environment: "happy-dom",
    include: ["src/**/*.test.{ts,tsx}"],
    restoreMocks: true,
    setupFiles: ["src/test-setup.ts"],
  },
});
