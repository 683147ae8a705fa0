import { useCallback, useEffect, useMemo, useRef, useState } from "react";
import type { PartVerdict } from "../../api/types";
import { useI18n } from "../../i18n";
import { NO_ROW, type Row } from "../../model/rows";
import { visibleRows } from "../../model/visible";
import type { ViewTab } from "../../url-state";
import { useViewState } from "../../use-view-state";
import { tellingLayer } from "./by-name";
import { useTree } from "./queries";
import type { Reveal } from "./TreeTable";
import { useActions } from "./use-actions";
import { PHONE, useMedia } from "./use-media";
import { sideWord } from "./words";
import { indexTree, readOpening, runFilter, selectedRow, type TreeIndex } from "./workbench-state";

export interface BenchOf {
  verdict: PartVerdict;
  slug: string;
  part: number | null;
  /** The verdict may be known before the tree is written. */
  done: boolean;
}

export type Bench = ReturnType<typeof useBench>;

/** The view state, the tree and what follows from the two. */
export function useBench({ verdict, slug, part, done }: BenchOf) {
  const { t } = useI18n();
  const words = t.compare;
  const [view, change] = useViewState();
  const phone = useMedia(PHONE);
  const loading = useTree(slug, part, done);
  const data = loading.data;
  const index = useMemo(() => (data === undefined ? null : indexTree(data, verdict.origins.length)), [data, verdict.origins.length]);
  const [closed, setClosed] = useState<ReadonlySet<number>>(new Set());
  const [reveal, setReveal] = useState<Reveal | null>(null);
  const token = useRef(0);

  // biome-ignore lint/correctness/useExhaustiveDependencies: only these two members of the view decide what is opened
  const { opened, unfolded } = useMemo(
    () => (index === null ? { opened: new Set<number>(), unfolded: new Set<number>() } : readOpening(index, view)),
    [index, view.opened],
  );
  const filter = useMemo(() => (index === null ? null : runFilter(index, view.query, view.brush)), [index, view.query, view.brush]);
  const visible = useMemo(
    () => (index === null || filter === null ? null : visibleRows(index.tree, index.runs, { opened, unfolded, closed }, filter.keep)),
    [index, filter, opened, unfolded, closed],
  );
  const firstOrder = verdict.first_difference?.order ?? null;
  const telling = useMemo(() => tellingLayer(verdict), [verdict]);
  const selected = index === null ? NO_ROW : selectedRow(index, view, telling, firstOrder);

  const askReveal = useCallback((row: Row) => {
    token.current += 1;
    setReveal({ row, token: token.current });
  }, []);
  const actions = useActions({ index, visible, filter, opened, unfolded, closed, selected, view, change, setClosed, askReveal, words });

  // The row that the link names, or the first divergence, is on the page when the tree arrives.
  const arrivedFor = useRef<TreeIndex | null>(null);
  useEffect(() => {
    if (index === null || arrivedFor.current === index) return;
    arrivedFor.current = index;
    if (selected === NO_ROW) return;
    const shown = visible !== null && filter?.keep === null && view.opened === null && view.node !== null;
    if (shown) actions.goTo(selected);
    else askReveal(selected);
  }, [index, selected, visible, filter, view.opened, view.node, actions, askReveal]);

  const layered = verdict.layers.length > 0 && verdict.verdict !== "not_comparable";
  const residual = verdict.findings.some(({ code }) => code === "residual_pair_output");
  const quiet = verdict.verdict === "consistent" || verdict.verdict === "identical";
  const own: ViewTab = phone ? "verdict" : quiet && layered && residual ? "layers" : "tree";
  const asked = view.tab ?? own;
  const desktop = asked === "graph" || (asked === "layers" && layered) ? asked : "tree";
  const tab: ViewTab = phone
    ? asked === "graph"
      ? "tree"
      : asked
    : view.tab === "verdict" || view.tab === "detail" || view.tab === "timeline"
      ? (own as ViewTab)
      : desktop;
  const sides = useMemo(
    () => ({ left: sideWord(verdict.left, verdict.right, "left", words), right: sideWord(verdict.right, verdict.left, "right", words) }),
    [verdict, words],
  );
  const setTab = (next: ViewTab) => change({ tab: next === own ? null : next }, "push");
  const anchor = useRef(view.anchor);
  anchor.current = view.anchor;
  const onAnchor = useCallback(
    (row: Row, top: boolean) => {
      if (row !== anchor.current && !(top && anchor.current === null)) change({ anchor: row });
    },
    [change],
  );
  return {
    view,
    change,
    phone,
    loading,
    index,
    closed,
    opened,
    filter,
    visible,
    selected,
    reveal,
    actions,
    tab,
    own,
    setTab,
    layered,
    sides,
    onAnchor,
    done,
  };
}
