import { useMemo } from "react";
import type { CompareMessages } from "../../i18n";
import { asRow, at, NO_ROW, type Row } from "../../model/rows";
import { moduleOf } from "../../model/tree";
import { holdsKept, placeOf, type VisibleRows } from "../../model/visible";
import { announce } from "../../ui/announce";
import type { ViewState } from "../../url-state";
import type { changeView } from "../../use-view-state";
import { placeName } from "./words";
import { type Filter, neighbourOrigin, openedToShow, type TreeIndex, writeOpening } from "./workbench-state";

export interface Situation {
  index: TreeIndex | null;
  visible: VisibleRows | null;
  filter: Filter | null;
  opened: ReadonlySet<number>;
  unfolded: ReadonlySet<number>;
  closed: ReadonlySet<number>;
  selected: Row;
  view: ViewState;
  change: typeof changeView;
  setClosed: (rows: ReadonlySet<number>) => void;
  askReveal: (row: Row) => void;
  words: CompareMessages;
}

export interface Actions {
  /** Select a row that is on the page. */
  select: (row: Row) => void;
  /** Select any row: opens what is above it, and drops a filter that hides it. */
  goTo: (row: Row) => void;
  goToOrigin: (origin: number) => void;
  stepOrigin: (step: 1 | -1) => void;
  firstDivergence: () => void;
  stepRow: (step: 1 | -1) => void;
  stepExecution: (step: 1 | -1) => void;
  /** Open or close what stands at a place of the page. */
  toggle: (place: number) => void;
  openOrEnter: () => void;
  closeOrLeave: () => void;
  toggleSelected: () => void;
  setQuery: (text: string) => void;
  setBrush: (brush: readonly [number, number] | null) => void;
  /** Set the selected origin aside and go to the next; taken back by `bringBack`. */
  ignore: () => void;
  bringBack: () => void;
}

/** Everything a reader can do to the page, as changes of the view state. Each is one step of the address; none touches the server. */
export function useActions(now: Situation): Actions {
  const { index, visible, filter, opened, unfolded, closed, selected, view, change, setClosed, askReveal, words } = now;
  return useMemo<Actions>(() => {
    const select = (row: Row) => {
      if (row === NO_ROW || index === null) return;
      change({ node: row });
      askReveal(row);
      announce(placeName(moduleOf(index.tree, row)));
    };
    const goTo = (row: Row) => {
      if (row === NO_ROW || index === null) return;
      const next = openedToShow(index, opened, unfolded, row);
      const hidden = filter?.keep != null && filter.keep[row] === 0;
      const changed = next === opened ? {} : { opened: writeOpening(index, next, unfolded) };
      change({ node: row, ...changed, ...(hidden ? { query: "", brush: null } : {}) });
      askReveal(row);
      announce(hidden ? words.query.cleared : placeName(moduleOf(index.tree, row)));
    };
    const goToOrigin = (origin: number) => goTo(index?.origins[origin] ?? NO_ROW);
    const setOpening = (nextOpened: ReadonlySet<number>, nextUnfolded: ReadonlySet<number>) => {
      if (index !== null) change({ opened: writeOpening(index, nextOpened, nextUnfolded) });
    };
    const toggle = (place: number) => {
      if (index === null || visible === null) return;
      const strip = visible.strips.get(place);
      if (strip !== undefined) {
        const first = strip.run.layers[0] as Row;
        setOpening(opened, flipped(unfolded, first));
        return;
      }
      const row = at(visible.rows, place);
      if (at(index.tree.size, row) === 1) return;
      if (filter?.keep != null && holdsKept(index.tree, filter.keep, row)) setClosed(flipped(closed, row));
      else setOpening(flipped(opened, row), unfolded);
    };
    const here = () => (visible === null ? -1 : placeOf(visible, selected));
    const isOpen = (place: number): boolean | null => {
      if (index === null || visible === null || place < 0) return null;
      const row = at(visible.rows, place);
      if (visible.strips.has(place)) return false;
      if (at(index.tree.size, row) === 1) return null;
      return filter?.keep != null && holdsKept(index.tree, filter.keep, row) ? !closed.has(row) : opened.has(row);
    };
    const selectPlace = (place: number) => {
      if (visible !== null && place >= 0 && place < visible.length) select(asRow(at(visible.rows, place)));
    };
    const stepRow = (step: 1 | -1) => {
      if (visible === null || visible.length === 0) return;
      const place = here();
      if (place < 0) {
        selectPlace(0);
        return;
      }
      // The handle of an unfolded run stands for its first layer, which follows it: stepping onto it would go nowhere.
      let next = place + step;
      while (visible.strips.get(next)?.open === true) next += step;
      selectPlace(next);
    };
    return {
      select,
      goTo,
      goToOrigin,
      toggle,
      stepRow,
      stepOrigin: (step) => {
        if (index === null) return;
        const { origin, wrapped } = neighbourOrigin(index, selected, view.ignored, step);
        if (origin < 0) return;
        goToOrigin(origin);
        if (wrapped) announce(words.origins.last);
      },
      firstDivergence: () => {
        const first = index?.origins.findIndex((row, origin) => row !== NO_ROW && !view.ignored.includes(origin)) ?? -1;
        if (first >= 0) goToOrigin(first);
      },
      stepExecution: (step) => {
        if (index === null || selected === NO_ROW) return;
        goTo(step === 1 ? index.execution.next(selected) : index.execution.previous(selected));
      },
      openOrEnter: () => {
        const place = here();
        const open = isOpen(place);
        if (open === false) toggle(place);
        else if (open === true) stepRow(1);
      },
      closeOrLeave: () => {
        const place = here();
        if (isOpen(place) === true) toggle(place);
        else if (index !== null && selected !== NO_ROW) {
          const parent = at(index.tree.parent, selected);
          if (parent >= 0) goTo(asRow(parent));
        }
      },
      toggleSelected: () => {
        const place = here();
        if (place >= 0) toggle(place);
      },
      setQuery: (query) => {
        setClosed(new Set());
        change({ query });
      },
      setBrush: (brush) => {
        setClosed(new Set());
        change({ brush });
      },
      ignore: () => {
        if (index === null) return;
        const own = selected === NO_ROW ? -1 : at(index.tree.origin, selected);
        if (own < 0) return;
        if (view.ignored.includes(own)) {
          change({ ignored: view.ignored.filter((origin) => origin !== own) });
          return;
        }
        const ignored = [...view.ignored, own].sort((a, b) => a - b);
        // Pinned: what was selected because it was the first origin stays selected, also where no other is left to go on to.
        change({ ignored, node: selected });
        const { origin } = neighbourOrigin(index, selected, ignored, 1);
        if (origin >= 0) goToOrigin(origin);
        else announce(words.origins.noOther);
      },
      bringBack: () => change({ ignored: [] }),
    };
  }, [index, visible, filter, opened, unfolded, closed, selected, view, change, setClosed, askReveal, words]);
}

function flipped(set: ReadonlySet<number>, value: number): ReadonlySet<number> {
  const next = new Set(set);
  if (!next.delete(value)) next.add(value);
  return next;
}
