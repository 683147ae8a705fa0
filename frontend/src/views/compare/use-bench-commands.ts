import { useMemo } from "react";
import type { PartVerdict } from "../../api/types";
import { useI18n } from "../../i18n";
import type { Command } from "../../ui/commands";
import type { Bench } from "./use-bench";

/** The keys of the workbench: each is a line of the key panel, and of the palette where it is worth searching for. */
export function useBenchCommands(bench: Bench, copyLink: () => void, filter: () => void, verdict: PartVerdict): readonly Command[] {
  const { t } = useI18n();
  const { actions, change, layered, phone, setTab } = bench;
  const words = t.compare.commands;
  const hasOrigins = verdict.origins.length > 0;
  return useMemo(() => {
    const move = (id: string, title: string, keys: readonly string[], run: () => void): Command => ({
      id,
      title,
      keys,
      group: "move",
      keysOnly: true,
      run,
    });
    const origins: Command[] = hasOrigins
      ? [
          { id: "next-origin", title: words.next, group: "move", keys: ["n"], run: () => actions.stepOrigin(1) },
          { id: "previous-origin", title: words.previous, group: "move", keys: ["p"], run: () => actions.stepOrigin(-1) },
          { id: "first-divergence", title: words.first, group: "move", keys: ["f"], run: actions.firstDivergence },
          { id: "ignore-origin", title: words.ignore, group: "view", keys: ["i"], run: actions.ignore },
          { id: "bring-back", title: words.undo, group: "view", keys: ["u"], run: actions.bringBack },
        ]
      : [];
    const tabs: Command[] = [{ id: "tab-tree", title: words.tree, group: "view", keys: ["1"], run: () => setTab("tree") }];
    if (layered) tabs.push({ id: "tab-layers", title: words.layers, group: "view", keys: ["2"], run: () => setTab("layers") });
    if (!phone) tabs.push({ id: "tab-graph", title: words.graph, group: "view", keys: ["3"], run: () => setTab("graph") });
    return [
      ...origins,
      move("down", words.down, ["j", "ArrowDown"], () => actions.stepRow(1)),
      move("up", words.up, ["k", "ArrowUp"], () => actions.stepRow(-1)),
      move("close", words.close, ["h", "ArrowLeft"], actions.closeOrLeave),
      move("open", words.open, ["l", "ArrowRight"], actions.openOrEnter),
      move("toggle", words.toggle, ["o"], actions.toggleSelected),
      move("later", words.later, ["]"], () => actions.stepExecution(1)),
      move("earlier", words.earlier, ["["], () => actions.stepExecution(-1)),
      { id: "filter", title: words.filter, group: "view", keys: ["/"], run: filter },
      { id: "clear-filter", title: words.clearFilter, group: "view", keys: ["Escape"], run: () => change({ query: "", brush: null }) },
      ...tabs,
      { id: "copy-link", title: words.copyLink, group: "share", keys: ["y"], run: copyLink },
    ];
  }, [words, actions, change, layered, phone, setTab, copyLink, filter, hasOrigins]);
}
