import { type PointerEvent, useEffect, useLayoutEffect, useMemo, useRef, useState } from "react";
import { type CompareMessages, useI18n } from "../../i18n";
import { rampLevel } from "../../layout/axis";
import { graphLayout, graphPanes, HEAD, minimap, placeAt } from "../../layout/graph";
import { layerDifference, summarise } from "../../model/fold";
import { asRow, at, GRADE, NO_ROW, ROLE, type Row } from "../../model/rows";
import { moduleOf, nameOf, partOf, type Tree, textOf } from "../../model/tree";
import { placeOf, type VisibleRows } from "../../model/visible";
import { type GraphBox, paintGraph, paintMinimap } from "../../paint/graph";
import { Button } from "../../ui/button";
import { type Command, useCommands } from "../../ui/commands";
import { SideMark } from "../../ui/side";
import styles from "./graph.module.css";
import { differenceText, type RowSides, reasonText, rowName, stripName } from "./TreeRow";
import type { Reveal } from "./TreeTable";
import { useSize } from "./use-size";
import { useTheme } from "./use-theme";
import type { TreeIndex } from "./workbench-state";

interface Props {
  index: TreeIndex;
  view: VisibleRows;
  selected: Row;
  reveal: Reveal | null;
  anchor: number | null;
  sides: RowSides;
  onSelect: (row: Row) => void;
  onToggle: (place: number) => void;
  onAnchor: (row: Row, top: boolean) => void;
}

const MAP = 52;
const LEAST = 0.12;
const MOST = 1.75;
const STEP = 1.25;
/** Left of a name, in pixels at 100 %: a press there opens and closes. */
const CHEVRON = 24;

/**
 * The visible rows as nested boxes, both sides at one height and links between partners. One canvas the size of the page, whatever there is;
 * the scroll bar moves the graph below it. Selection, opening and filter are the tree's own.
 */
export function Graph(props: Props) {
  const { index, view, selected, reveal, anchor, sides, onSelect, onToggle, onAnchor } = props;
  const { t } = useI18n();
  const words = t.compare;
  const theme = useTheme();
  const scroller = useRef<HTMLDivElement>(null);
  const canvas = useRef<HTMLCanvasElement>(null);
  const map = useRef<HTMLCanvasElement>(null);
  const size = useSize(scroller);
  const width = size?.width ?? 0;
  const height = size?.height ?? 0;
  const [scale, setScale] = useState(1);
  const [top, setTop] = useState(0);
  const [hovered, setHovered] = useState(-1);
  const layout = useMemo(() => graphLayout(view), [view]);
  const panes = useMemo(() => graphPanes(width / scale), [width, scale]);
  const place = selected === NO_ROW ? -1 : placeOf(view, selected);

  const boxOf = useMemo(() => {
    const known = new Map<number, GraphBox>();
    return (of: number): GraphBox => {
      const box = known.get(of) ?? graphBox(index.tree, view, of, words);
      known.set(of, box);
      return box;
    };
  }, [view, index, words]);

  useLayoutEffect(() => {
    if (canvas.current === null || width === 0) return;
    paintGraph(
      canvas.current,
      { width, height, scale, from: top / scale, layout, panes, boxOf, selected: place, hovered, noPartner: words.graph.noPartner },
      theme,
    );
  }, [width, height, scale, top, layout, panes, boxOf, place, hovered, words, theme]);

  const levels = useMemo(() => minimap(layout, Math.floor(height), (of) => levelOf(index.tree, view, of)), [layout, height, index, view]);
  const origins = useMemo(
    () =>
      index.origins.flatMap((row) => {
        const of = row === NO_ROW ? -1 : placeOf(view, row);
        return of < 0 ? [] : [(at(layout.top, of) + HEAD / 2) / layout.total];
      }),
    [index, view, layout],
  );
  const whole = Math.max(1, layout.total * scale);
  useLayoutEffect(() => {
    if (map.current === null || height === 0) return;
    paintMinimap(map.current, { width: MAP, height, levels, from: top / whole, to: (top + height) / whole, origins }, theme);
  }, [height, levels, top, whole, origins, theme]);

  // Once the size is known: where the link stands, else what is selected; later whenever something is asked for.
  const seen = useRef<Reveal | null>(null);
  const begun = useRef(0);
  useEffect(() => {
    const element = scroller.current;
    if (height === 0 || element === null) return;
    const bring = (to: number, margin: number) => {
      const y = at(layout.top, to) * scale;
      const inside = y >= element.scrollTop + margin && y + HEAD * scale <= element.scrollTop + element.clientHeight - margin;
      if (!inside) element.scrollTop = Math.max(0, y - element.clientHeight * 0.4);
    };
    if (begun.current !== height) {
      const first = anchor === null || begun.current > 0 ? -1 : placeOf(view, asRow(anchor));
      begun.current = height;
      seen.current = reveal;
      if (first >= 0) element.scrollTop = at(layout.top, first) * scale;
      // Also where the room for the graph changes: what was in sight stays there.
      if (place >= 0) bring(place, 0);
      return;
    }
    if (reveal === null || reveal === seen.current) return;
    seen.current = reveal;
    const to = placeOf(view, reveal.row);
    if (to >= 0) bring(to, 24);
  }, [height, reveal, view, layout, scale, anchor, place]);

  const anchorTimer = useRef(0);
  const onScroll = () => {
    const element = scroller.current;
    if (element === null) return;
    setTop(element.scrollTop);
    window.clearTimeout(anchorTimer.current);
    anchorTimer.current = window.setTimeout(() => {
      const first = placeAt(layout, element.scrollTop / scale + HEAD);
      const row = view.rows[Math.max(0, first)];
      if (row !== undefined) onAnchor(asRow(row), element.scrollTop === 0);
    }, 250);
  };

  /** The middle of the picture stays where it is. */
  const zoom = (to: number) => {
    const next = Math.max(LEAST, Math.min(MOST, to));
    const element = scroller.current;
    const middle = element === null ? 0 : (element.scrollTop + height / 2) / scale;
    setScale(next);
    requestAnimationFrame(() => {
      if (element !== null) element.scrollTop = middle * next - height / 2;
    });
  };
  const fit = () => zoom(height / Math.max(1, layout.total));
  useCommands(zoomCommands(words, scale, zoom, fit));

  const under = (event: PointerEvent) => {
    const box = (event.currentTarget as Element).getBoundingClientRect();
    const x = (event.clientX - box.left) / scale;
    const found = placeAt(layout, (event.clientY - box.top + top) / scale);
    return { x, found };
  };
  const press = (event: PointerEvent) => {
    if (event.button !== 0) return;
    const { x, found } = under(event);
    if (found < 0) return;
    const row = asRow(at(view.rows, found));
    const box = boxOf(found);
    const paneX = x >= panes.right ? panes.right : panes.left;
    const inset = Math.min(at(layout.level, found), 9) * 10;
    const onChevron = box.expanded !== null && x - paneX - inset < CHEVRON;
    if (onChevron) onToggle(found);
    else onSelect(row);
    scroller.current?.focus({ preventScroll: true });
  };
  const pan = useRef(false);
  const moveMap = (event: PointerEvent) => {
    const box = (event.currentTarget as Element).getBoundingClientRect();
    if (scroller.current !== null) scroller.current.scrollTop = ((event.clientY - box.top) / box.height) * whole - height / 2;
  };

  const box = place < 0 ? null : boxOf(place);
  return (
    <div className={styles.graph}>
      <header className={styles.head}>
        <span className={styles.side}>
          <SideMark side="left" /> {sides.left}
        </span>
        <span className={styles.side}>
          <SideMark side="right" /> {sides.right}
        </span>
        {/* biome-ignore lint/a11y/useSemanticElements: a fieldset cannot be laid out as one joined control in every browser */}
        <span className={styles.zoom} role="group" aria-label={words.graph.zoom}>
          <Button className={styles.tool} aria-label={words.graph.smaller} onClick={() => zoom(scale / STEP)}>
            −
          </Button>
          <Button className={styles.tool} aria-label={words.graph.actual(`${Math.round(scale * 100)}`)} onClick={() => zoom(1)}>
            {Math.round(scale * 100)} %
          </Button>
          <Button className={styles.tool} aria-label={words.graph.larger} onClick={() => zoom(scale * STEP)}>
            +
          </Button>
          <Button className={styles.tool} onClick={fit}>
            {words.graph.fit}
          </Button>
        </span>
      </header>
      <div className={styles.body}>
        <div
          ref={scroller}
          className={styles.scroller}
          role="tree"
          tabIndex={0}
          aria-label={words.graph.label}
          aria-activedescendant={box === null ? undefined : "graph-selected"}
          data-testid="graph"
          onScroll={onScroll}
          onWheel={(event) => {
            if (event.ctrlKey || event.metaKey) zoom(scale * (event.deltaY < 0 ? STEP : 1 / STEP));
          }}
        >
          <div style={{ height: Math.max(whole, height) }}>
            <canvas
              ref={canvas}
              className={styles.canvas}
              onPointerDown={press}
              onDoubleClick={() => place >= 0 && boxOf(place).expanded !== null && onToggle(place)}
              onPointerMove={(event) => setHovered(under(event).found)}
              onPointerLeave={() => setHovered(-1)}
            />
          </div>
          {box === null ? null : (
            // What the canvas shows of the selected box, for whoever does not see it.
            <div id="graph-selected" {...treeItem(at(layout.level, place) + 1, box.expanded)} className="visually-hidden">
              {spoken(index.tree, view, place, box, sides, words, t.common.comma)}
            </div>
          )}
        </div>
        <canvas
          ref={map}
          className={styles.map}
          onPointerDown={(event) => {
            pan.current = true;
            event.currentTarget.setPointerCapture(event.pointerId);
            moveMap(event);
          }}
          onPointerMove={(event) => pan.current && moveMap(event)}
          onPointerUp={() => {
            pan.current = false;
          }}
        />
      </div>
    </div>
  );
}

/** The one item that the tree names as active. */
function treeItem(level: number, expanded: boolean | null) {
  return {
    role: "treeitem",
    "aria-selected": true,
    "aria-level": level,
    ...(expanded === null ? {} : { "aria-expanded": expanded }),
  } as const;
}

function zoomCommands(words: CompareMessages, scale: number, zoom: (to: number) => void, fit: () => void): readonly Command[] {
  return [
    { id: "graph-larger", title: words.graph.larger, group: "view", keys: ["+", "="], run: () => zoom(scale * STEP) },
    { id: "graph-smaller", title: words.graph.smaller, group: "view", keys: ["-"], run: () => zoom(scale / STEP) },
    { id: "graph-fit", title: words.graph.fitTitle, group: "view", keys: ["0"], run: fit },
  ];
}

function levelOf(tree: Tree, view: VisibleRows, place: number): number {
  const strip = view.strips.get(place);
  if (strip !== undefined) return Math.max(...strip.layers.map((layer) => rampLevel(layerDifference(tree, layer), at(tree.floor, layer))));
  const row = at(view.rows, place);
  return rampLevel(at(tree.difference, row), at(tree.floor, row));
}

/** What is drawn of a place, from the tree's columns. */
export function graphBox(tree: Tree, view: VisibleRows, place: number, words: CompareMessages): GraphBox {
  const row = asRow(at(view.rows, place));
  const strip = view.strips.get(place);
  if (strip !== undefined) {
    const name = stripName(tree, strip, words);
    const cells = strip.layers.map((layer) => rampLevel(layerDifference(tree, layer), at(tree.floor, layer)));
    const { difference, origins, inherited, amplified } = summarise(tree, strip.layers);
    return {
      left: [name],
      right: [name],
      value: Number.isNaN(difference) ? "" : differenceText(difference, words),
      level: 0,
      role: origins > 0 ? ROLE.origin : inherited + amplified > 0 ? ROLE.inherited : at(tree.role, strip.layers[0] as Row),
      dirty: origins + inherited + amplified > 0,
      ratio: "",
      cells,
      expanded: strip.open,
    };
  }
  const leftCount = at(tree.left_count, row);
  const rightCount = at(tree.right_count, row);
  const recorded = leftCount + rightCount > 0;
  const part = partOf(tree, row);
  const name = nameOf(tree, row);
  const right = textOf(tree, tree.right_name, row) ?? name;
  // Which columns of the fused tensor a part fills; nothing where that is not known.
  const partColumns = part?.columns == null ? [] : [words.tree.columns(part.columns)];
  const role = at(tree.role, row);
  const difference = at(tree.difference, row);
  const worst = at(tree.worst, row);
  const grade = at(tree.grade, row);
  const value =
    grade === GRADE.equal
      ? words.tree.equal
      : !Number.isNaN(difference)
        ? differenceText(difference, words)
        : Number.isNaN(worst)
          ? ""
          : words.graph.inside(differenceText(worst, words));
  const expanded = at(tree.size, row) === 1 ? null : isOpen(view, place);
  // Opened, several records are one box around their parts.
  const split = (text: string, count: number) => (count > 1 && expanded !== true ? text.split(", ") : [text]);
  return {
    ...(part === null
      ? {
          left: !recorded ? [rowName(tree, row, words)] : leftCount === 0 ? null : split(name, leftCount),
          right: !recorded ? [rowName(tree, row, words)] : rightCount === 0 ? null : split(right, rightCount),
        }
      : { left: part.side === "left" ? [name] : partColumns, right: part.side === "right" ? [name] : partColumns }),
    value,
    level: rampLevel(difference, at(tree.floor, row)),
    role,
    dirty: role === ROLE.origin || role === ROLE.inherited || role === ROLE.amplified,
    ratio: leftCount > 0 && rightCount > 0 && leftCount + rightCount > 2 ? words.tree.ratio(`${leftCount}`, `${rightCount}`) : "",
    cells: null,
    expanded,
  };
}

function isOpen({ depth, length }: VisibleRows, place: number): boolean {
  return place + 1 < length && at(depth, place + 1) > at(depth, place);
}

function spoken(
  tree: Tree,
  view: VisibleRows,
  place: number,
  box: GraphBox,
  sides: RowSides,
  words: CompareMessages,
  comma: string,
): string {
  const row = asRow(at(view.rows, place));
  const strip = view.strips.get(place);
  const name = strip === undefined ? moduleOf(tree, row) : stripName(tree, strip, words);
  const roles = ["none", "origin", "inherited", "amplified", "healed", "leftOnly", "rightOnly", "noData", "notComparable"] as const;
  const role = roles[box.role] ?? "none";
  const aside = box.role >= ROLE.leftOnly ? reasonText(tree, row, sides, words) : "";
  return [name, role === "none" ? "" : words.roles[role], box.value, box.ratio, aside].filter((text) => text !== "").join(comma);
}
