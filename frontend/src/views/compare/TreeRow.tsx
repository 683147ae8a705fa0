import { ChevronDown, ChevronRight } from "lucide-react";
import { memo } from "react";
import type { Origin } from "../../api/types";
import type { CompareMessages } from "../../i18n";
import { factor, percent } from "../../i18n/format";
import { BOLD_LEVEL, rampLevel } from "../../layout/axis";
import { ROW_HEIGHT } from "../../layout/grid";
import { summarise } from "../../model/fold";
import { at, GRADE, KIND, ROLE, type Row } from "../../model/rows";
import { moduleOf, nameOf, partOf, reasonOf, type Tree, textOf } from "../../model/tree";
import type { Strip } from "../../model/visible";
import { hasBar } from "../../paint/bars";
import { RoleGlyph, type RoleName, roleName } from "./RoleGlyph";
import styles from "./tree.module.css";

/** The grid itself has the focus and names its row by aria-activedescendant: rows and cells are no stops of their own. */
const CELL = { role: "gridcell" } as const;

function rowAttributes(place: number, depth: number, selected: boolean, expanded: boolean | null) {
  return {
    role: "row",
    "aria-level": depth + 1,
    // The header is row 1.
    "aria-rowindex": place + 2,
    "aria-selected": selected,
    ...(expanded === null ? {} : { "aria-expanded": expanded }),
  } as const;
}

export interface RowSides {
  readonly left: string;
  readonly right: string;
}

interface Props {
  tree: Tree;
  row: Row;
  place: number;
  depth: number;
  strip: Strip | null;
  expanded: boolean | null;
  selected: boolean;
  /** On the page only because of what is below it. */
  context: boolean;
  origin: Origin | null;
  sides: RowSides;
  words: CompareMessages;
}

/** One row of the tree. Its bar is not here: the column's canvas draws it. */
export const TreeRow = memo(function TreeRow(props: Props) {
  const { tree, row, place, depth, strip, expanded, selected, context, words } = props;
  const role = strip === null ? at(tree.role, row) : stripRole(tree, strip);
  const glyph = roleName(role);
  const name = strip === null ? rowName(tree, row, words) : stripName(tree, strip, words);
  // Where there is no room for the inference column, its name stands here instead of a dash.
  const engineOnly = strip === null && holdsRecords(tree, row) && at(tree.left_count, row) === 0;
  const classes = [styles.row, selected ? styles.selected : "", context ? styles.context : ""].filter(Boolean).join(" ");
  return (
    <div
      {...rowAttributes(place, depth, selected, expanded)}
      id={`row-${place}`}
      data-place={place}
      className={classes}
      style={{ top: place * ROW_HEIGHT }}
    >
      <span {...CELL} className={styles.gutter}>
        {glyph === null ? null : (
          <>
            <RoleGlyph name={glyph} />
            <span className="visually-hidden">{roleWord(role, words)}</span>
          </>
        )}
      </span>
      <span {...CELL} className={styles.train} style={{ paddingLeft: depth * 14, backgroundSize: `${Math.max(0, depth) * 14}px 100%` }}>
        <span className={styles.chevron} data-toggle={expanded === null ? undefined : ""} aria-hidden="true">
          {expanded === null ? null : expanded ? <ChevronDown size={13} /> : <ChevronRight size={13} />}
        </span>
        <span className={`${styles.name} ${engineOnly ? styles.absentName : ""}`} title={strip === null ? moduleOf(tree, row) : name}>
          {name}
        </span>
        {engineOnly ? (
          <span className={styles.engineName} title={moduleOf(tree, row)}>
            {rightName(tree, row)}
          </span>
        ) : null}
        {strip === null ? (
          <Ratio tree={tree} row={row} words={words} />
        ) : (
          <span className={styles.tag}>{words.tree.times(String(strip.layers.length))}</span>
        )}
      </span>
      {strip === null ? <RowCells {...props} /> : <StripCells tree={tree} strip={strip} words={words} />}
    </div>
  );
});

function roleWord(role: number, words: CompareMessages): string {
  const names = ["none", "origin", "inherited", "amplified", "healed", "leftOnly", "rightOnly", "noData", "notComparable"] as const;
  return words.roles[names[role] ?? "none"];
}

/** What a row that only the right side has is called there; of a part `right_name` is no name. */
function rightName(tree: Tree, row: Row): string {
  return (partOf(tree, row) === null ? textOf(tree, tree.right_name, row) : null) ?? nameOf(tree, row);
}

/** Where in the fused tensor a part lies; nothing where that is not known. */
function columnsText(columns: string | null, words: CompareMessages): string {
  return columns === null ? "" : words.tree.columns(columns);
}

/** Sections and containers stand for no record of either side. */
function holdsRecords(tree: Tree, row: Row): boolean {
  return at(tree.left_count, row) + at(tree.right_count, row) > 0;
}

export function rowName(tree: Tree, row: Row, words: CompareMessages): string {
  const name = nameOf(tree, row);
  const part = partOf(tree, row);
  if (part?.side === "right") return columnsText(part.columns, words);
  if (at(tree.kind, row) === KIND.section) {
    const [, section, number] = /^(\w+)(?: (\d+))?$/.exec(name) ?? [];
    if (section === "rank" && number !== undefined) return words.tree.rank(number);
    const known = section === undefined ? undefined : words.tree.sections[section];
    if (known === undefined) return name;
    return number === undefined ? known : words.tree.sectionCall(known, number);
  }
  return holdsRecords(tree, row) && at(tree.left_count, row) === 0 ? words.tree.noPartner : name;
}

export function stripName(tree: Tree, strip: Strip, words: CompareMessages): string {
  // A backward pass runs from the last layer to the first; the name counts up either way.
  const ends = [strip.layers[0], strip.layers.at(-1)].map((layer) => at(tree.layer, layer as Row));
  return words.tree.layers(String(Math.min(...ends)), String(Math.max(...ends)));
}

function stripRole(tree: Tree, strip: Strip): number {
  const roles = new Set(strip.layers.map((layer) => at(tree.role, layer)));
  for (const role of [ROLE.origin, ROLE.inherited, ROLE.amplified, ROLE.healed]) if (roles.has(role)) return role;
  return roles.size === 1 ? ([...roles][0] as number) : ROLE.none;
}

function Ratio({ tree, row, words }: { tree: Tree; row: Row; words: CompareMessages }) {
  const left = at(tree.left_count, row);
  const right = at(tree.right_count, row);
  if (left === 0 || right === 0 || (left === 1 && right === 1)) return null;
  return <span className={styles.tag}>{words.tree.ratio(String(left), String(right))}</span>;
}

function Inference({ tree, row, words }: { tree: Tree; row: Row; words: CompareMessages }) {
  const right = textOf(tree, tree.right_name, row);
  const role = at(tree.role, row);
  const part = partOf(tree, row);
  if (part !== null) {
    const parent = at(tree.parent, row);
    const last = row + 1 >= parent + at(tree.size, parent);
    const text = part.side === "right" ? nameOf(tree, row) : columnsText(part.columns, words);
    return (
      <span className={`${styles.bracket} ${last ? styles.bracketLast : ""}`} title={text}>
        {text}
      </span>
    );
  }
  if (!holdsRecords(tree, row)) return null;
  if (at(tree.left_count, row) === 0) return <span title={moduleOf(tree, row)}>{right ?? nameOf(tree, row)}</span>;
  if (at(tree.right_count, row) === 0) return <span className={styles.absent}>—</span>;
  if (role === ROLE.notComparable) {
    const kind = textOf(tree, tree.right_class, row);
    return (
      <span title={kind ?? undefined}>
        {right ?? nameOf(tree, row)} {kind === null ? null : <span className={styles.absent}>{kind}</span>}
      </span>
    );
  }
  return right === null ? null : <span title={right}>{right}</span>;
}

/** Why a row has no number, in words, where its bar would be. */
export function reasonText(tree: Tree, row: Row, sides: RowSides, words: CompareMessages): string {
  const role = at(tree.role, row);
  const [own, other] = role === ROLE.rightOnly ? [sides.right, sides.left] : [sides.left, sides.right];
  const reason = reasonOf(tree, row);
  const known = reason === null ? undefined : words.reasons[reason];
  if (known !== undefined) return known(own, other);
  if (role === ROLE.notComparable) return words.reasonNotComparable;
  if (role === ROLE.noData) return words.reasonNoData;
  return words.reasonUnmatched(other);
}

function RowCells({ tree, row, origin, sides, words }: Props) {
  const role = at(tree.role, row);
  const difference = at(tree.difference, row);
  const level = rampLevel(difference, at(tree.floor, row));
  const aside = role >= ROLE.leftOnly;
  if (aside && !hasBar(tree, row)) {
    const text = reasonText(tree, row, sides, words);
    return (
      <>
        <span {...CELL} className={styles.inference}>
          <Inference tree={tree} row={row} words={words} />
        </span>
        <span {...CELL} className={styles.reason} title={text}>
          {text}
        </span>
      </>
    );
  }
  const bold = level >= BOLD_LEVEL ? styles.bold : "";
  return (
    <>
      <span {...CELL} className={styles.inference}>
        <Inference tree={tree} row={row} words={words} />
      </span>
      <span {...CELL} className={styles.bar} />
      <span {...CELL} className={`${styles.value} ${bold}`}>
        <ValueText tree={tree} row={row} words={words} />
      </span>
      <span {...CELL} className={`${styles.growth} ${level >= BOLD_LEVEL && at(tree.growth, row) >= 5 ? styles.bold : ""}`}>
        {growthText(at(tree.growth, row))}
      </span>
      <span {...CELL} className={styles.inside}>
        {origin !== null ? (
          words.origins.kinds[origin.kind]
        ) : role === ROLE.healed ? (
          words.tree.backInNoise
        ) : (
          <Counts
            origins={at(tree.inside_origin, row)}
            inherited={at(tree.inside_inherited, row)}
            amplified={at(tree.inside_amplified, row)}
            words={words}
          />
        )}
      </span>
    </>
  );
}

function ValueText({ tree, row, words }: { tree: Tree; row: Row; words: CompareMessages }) {
  const difference = at(tree.difference, row);
  const grade = at(tree.grade, row);
  if (grade === GRADE.equal) return <span className={styles.equal}>{words.tree.equal}</span>;
  if (difference === Number.POSITIVE_INFINITY || (Number.isNaN(difference) && grade === GRADE.diverged)) return words.tree.nonfinite;
  if (Number.isNaN(difference)) return null;
  return percent(difference);
}

/** NaN or Inf on one side has no size. */
export function differenceText(difference: number, words: CompareMessages): string {
  return difference === Number.POSITIVE_INFINITY ? words.tree.nonfinite : percent(difference);
}

/** From a number to NaN there is no factor. */
export function growthText(growth: number): string {
  return Number.isFinite(growth) ? factor(growth) : "";
}

function StripCells({ tree, strip, words }: { tree: Tree; strip: Strip; words: CompareMessages }) {
  const summary = summarise(tree, strip.layers);
  const level = rampLevel(summary.difference, summary.floor);
  const bold = level >= BOLD_LEVEL ? styles.bold : "";
  const worst = rowName(tree, summary.worstLayer, words);
  const equal = strip.layers.every((layer) => at(tree.grade, layer) === GRADE.equal);
  const healed = stripRole(tree, strip) === ROLE.healed;
  return (
    <>
      <span {...CELL} className={styles.inference} />
      <span {...CELL} className={styles.bar}>
        <span className="visually-hidden">{words.tree.layersAria(strip.layers.length, String(strip.layers.length))}</span>
      </span>
      <span {...CELL} className={`${styles.value} ${bold}`}>
        {equal ? (
          <span className={styles.equal}>{words.tree.equal}</span>
        ) : Number.isNaN(summary.difference) ? null : (
          differenceText(summary.difference, words)
        )}
      </span>
      <span {...CELL} className={styles.growth}>
        {level > 0 || healed ? growthText(summary.growth) : ""}
      </span>
      <span {...CELL} className={styles.inside}>
        {summary.origins + summary.inherited + summary.amplified > 0 ? (
          <Counts origins={summary.origins} inherited={summary.inherited} amplified={summary.amplified} words={words} />
        ) : healed ? (
          words.tree.backInNoise
        ) : equal || Number.isNaN(summary.difference) ? null : (
          <span title={words.tree.worst(worst)}>{words.tree.worst(worst.split(".").at(-1) ?? worst)}</span>
        )}
      </span>
    </>
  );
}

function Counts(props: { origins: number; inherited: number; amplified: number; words: CompareMessages }) {
  const { origins, inherited, amplified, words } = props;
  const parts: [RoleName, number, string][] = [
    ["origin", origins, words.tree.insideOrigins(origins, String(origins))],
    ["inherited", inherited, words.tree.insideInherited(String(inherited))],
    ["amplified", amplified, words.tree.insideAmplified(String(amplified))],
  ];
  return parts.map(([name, count, text]) =>
    count === 0 ? null : (
      <span key={name} className={styles.count} title={text}>
        <RoleGlyph name={name} size={11} />
        {count}
      </span>
    ),
  );
}
