import { DEFAULT_VIEW } from "../../url-state";
import { changeView } from "../../use-view-state";

/** As parts-page.module.css has it. */
const STACKED = "(max-width: 1100px)";

/** Opens a part afresh; Back leads to where the reader was. */
export function openPart(part: number | null): void {
  changeView({ ...DEFAULT_VIEW, part }, "push");
}

/** Leads to the tables that are shown and puts the focus into them, so that a press is felt where they were in sight all along. */
export function goToTables(n: number): void {
  changeView({ table: n, entry: null, row: null });
  requestAnimationFrame(() => {
    const panel = document.querySelector<HTMLElement>(`[data-testid="key-data"]`);
    panel?.scrollIntoView({ block: "start" });
    panel?.querySelector<HTMLElement>(`[role="grid"]`)?.focus({ preventScroll: true });
  });
}

/** Where the columns stand below one another the tables are brought into sight; beside one another they are there already. */
export function openTable(n: number): void {
  changeView({ table: n, entry: null, row: null });
  if (!window.matchMedia(STACKED).matches) return;
  requestAnimationFrame(() => document.querySelector(`[data-testid="key-data"]`)?.scrollIntoView({ block: "start" }));
}
