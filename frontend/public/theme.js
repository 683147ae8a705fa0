// Runs before the first paint, so that a reader who chose a theme never sees the other one flash by. A file of its own and not a module:
// the page's policy forbids inline scripts, and a module would run after the paint. src/ui/preferences.ts keeps the attribute from then on.
(() => {
  let stored = null;
  try {
    stored = localStorage.getItem("probe.theme");
  } catch {
    // Storage may be forbidden; the system's choice then holds.
  }
  const dark = stored === "dark" || (stored !== "light" && matchMedia("(prefers-color-scheme: dark)").matches);
  document.documentElement.dataset.theme = dark ? "dark" : "light";
})();
