import { type ReactNode, useRef } from "react";
import { asRequestError } from "../../api/problem";
import type { NodeDetail, Origin, PartVerdict } from "../../api/types";
import { useI18n } from "../../i18n";
import { Button } from "../../ui/button";
import { CopyButton } from "../../ui/copy-button";
import { SideMark } from "../../ui/side";
import { Checked } from "./Checked";
import styles from "./detail.module.css";
import { Floors } from "./Floors";
import { useNode } from "./queries";
import { ResidualPicture, ResidualRelation, residualSlot } from "./Residual";
import { RoleGlyph, type RoleName } from "./RoleGlyph";
import { type SlotColumns, SlotTable, slotColumns, WorstStatistics } from "./SlotTable";
import { Stacks } from "./Stacks";
import { Tensors } from "./Tensors";
import { useSize } from "./use-size";
import { explainNode, splitPath } from "./words";

interface Props {
  slug: string;
  part: number | null;
  row: number;
  verdict: PartVerdict;
  /** The origin that the row is, with its place in the verdict's list. */
  origin: { readonly index: number; readonly origin: Origin } | null;
  ignored: boolean;
  sides: { readonly left: string; readonly right: string };
  /** On a phone's first page: the worst statistics and the reason, the rest is a tab away. */
  brief?: boolean;
  onIgnore: () => void;
  onCopyLink: () => void;
  /** Where the reader may match by hand: begin with this row; say that it has no partner. */
  onMatch?: (() => void) | null;
  onUnmatch?: (() => void) | null;
}

/** The selected row in full: what happened in words first, then the numbers, then how it was paired, then where it was called. */
export function Detail(props: Props) {
  const { slug, part, row, verdict } = props;
  const { t } = useI18n();
  const words = t.compare.detail;
  const { data: node, error, failureCount, isPaused, isPlaceholderData, refetch } = useNode(slug, part, row);
  if (row < 0) {
    return (
      <section className={styles.detail} aria-label={words.label}>
        <p className={styles.quiet}>{words.nothing}</p>
        <Checked verdict={verdict} />
      </section>
    );
  }
  // The row before may stand in for a moment, not for a server that does not answer.
  const stale = isPlaceholderData && (error !== null || failureCount > 0 || isPaused);
  if (node === undefined || stale) {
    return (
      <section className={styles.detail} aria-label={words.label} aria-busy={error === null}>
        <p className={styles.quiet} role={error === null ? undefined : "alert"}>
          {error === null ? words.loading : `${words.failed} ${asRequestError(error).problem.message}`}
        </p>
        {error === null ? null : (
          <p className={styles.quiet}>
            <Button onClick={() => void refetch()}>{t.common.retry}</Button>
          </p>
        )}
      </section>
    );
  }
  return <Loaded {...props} node={node} waiting={isPlaceholderData} />;
}

interface WithNode extends Props {
  node: NodeDetail;
}

function Loaded(props: WithNode & { waiting: boolean }) {
  const { node, waiting, brief } = props;
  const { t } = useI18n();
  const frame = useRef<HTMLElement>(null);
  const columns = slotColumns(useSize(frame)?.width ?? 634);
  return (
    <section ref={frame} className={styles.detail} aria-label={t.compare.detail.label} aria-busy={waiting} data-node={node.n}>
      {brief ? <DetailBrief {...props} /> : <DetailHead {...props} roomy={columns === 6} />}
      {brief ? null : <DetailBody {...props} columns={columns} />}
    </section>
  );
}

function DetailBrief({ node, origin, sides }: WithNode) {
  const { t, language } = useI18n();
  return (
    <>
      <WorstStatistics slots={node.slots} sides={sides} />
      <div className={styles.summary}>
        <Explanation runs={explainNode(node, origin?.origin ?? null, language, t.compare)} />
      </div>
      <Stacks key={`stacks-${node.n}`} stacks={node.stacks} note={null} />
    </>
  );
}

function Explanation({ runs }: { runs: ReturnType<typeof explainNode> }) {
  return (
    <p className={styles.reason} data-testid="reason">
      {runs.map((run, place) =>
        // biome-ignore lint/suspicious/noArrayIndexKey: runs of one sentence never move
        run.strong ? <b key={place}>{run.text}</b> : <span key={place}>{run.text}</span>,
      )}
    </p>
  );
}

function DetailHead({ node, origin, ignored, onIgnore, onCopyLink, roomy }: WithNode & { roomy: boolean }) {
  const { t } = useI18n();
  const words = t.compare.detail;
  const [before, last] = splitPath(node.module ?? "");
  return (
    <header className={styles.head}>
      <h2 className={styles.path} title={node.module ?? ""}>
        <span className={styles.before}>{before}</span>
        <b>{last}</b>
      </h2>
      <CopyButton text={node.module ?? ""} label={words.copyPath} className={styles.copy} />
      <span className={styles.tools}>
        {origin === null ? null : (
          <Button look="quiet" className={styles.tool} shortcut="i" onClick={onIgnore}>
            {ignored ? words.unignore : words.ignore}
          </Button>
        )}
        {roomy ? (
          <Button look="quiet" className={styles.tool} shortcut="y" onClick={onCopyLink}>
            {words.copyLink}
          </Button>
        ) : null}
      </span>
    </header>
  );
}

function DetailBody({ node, origin, verdict, sides, columns, onMatch, onUnmatch }: WithNode & { columns: SlotColumns }) {
  const { t, language } = useI18n();
  const words = t.compare;
  const own = new Set([...node.left, ...node.right].map(({ name }) => name));
  const residual = residualSlot(node);
  const others = node.slots.filter((slot) => slot.elsewhere && slot !== residual);
  const isLayer = node.layer >= 0 && /\.\d+$/.test(node.module ?? "");
  const findings = verdict.findings.filter(
    (finding) => node.module !== null && finding.modules.includes(node.module) && finding.code !== "residual_pair_output",
  );
  const pictured = residual !== null && isLayer && residual.group === "output" && residual.left.length === 1 && residual.right.length === 1;
  const quiet = verdict.verdict === "consistent" || verdict.verdict === "identical";
  // Below its width the drawing's words would be too small to read; its caption says the same.
  const picture = pictured && columns === 6 ? <ResidualPicture node={node} slot={residual} sides={sides} /> : null;
  return (
    <div className={styles.body}>
      <div className={styles.summary}>
        <div className={styles.facts}>
          <RoleBadge node={node} origin={origin?.origin ?? null} />
          <Classes node={node} />
          {node.order === null || node.order < 0 || node.of === null ? null : (
            <span className={styles.order} title={words.detail.orderHint}>
              {words.detail.order(String(node.order), String(node.of))}
            </span>
          )}
        </div>
        <Explanation runs={explainNode(node, origin?.origin ?? null, language, words)} />
        {findings.map((finding) => (
          <p key={finding.code} className={styles.reason}>
            {finding.text[language]}
          </p>
        ))}
      </div>
      {quiet ? picture : null}
      {node.slots.length > 0 ? (
        <SlotTable key={node.n} slots={node.slots} sides={sides} columns={columns} own={own} origin={origin !== null} />
      ) : null}
      <Floors slots={node.slots} />
      <Tensors key={`tensors-${node.n}`} slots={node.slots} columns={columns} />
      {quiet ? null : picture}
      {residual === null ? null : (
        <ResidualRelation title={isLayer ? words.detail.residualTitle : words.detail.residualOther} slots={[residual]} />
      )}
      {others.length === 0 ? null : (
        <ResidualRelation title={residual === null ? words.detail.residualOther : words.detail.residualMore} slots={others} />
      )}
      {onMatch ? (
        <div className={styles.matching}>
          <Button shortcut="m" title={t.mapping.beginHint} onClick={onMatch}>
            {t.mapping.begin}
          </Button>
          {onUnmatch ? (
            <Button shortcut="M" onClick={onUnmatch}>
              {t.mapping.unmatch}
            </Button>
          ) : null}
        </div>
      ) : null}
      {origin !== null && origin.origin.causes.length > 2 ? <Causes origin={origin.origin} /> : null}
      <Stacks key={`stacks-${node.n}`} stacks={node.stacks} note={tensorNote(verdict, words.detail.noTensors)} />
      <Records node={node} />
      {quiet ? <Checked verdict={verdict} /> : null}
    </div>
  );
}

function tensorNote(verdict: PartVerdict, text: string): ReactNode {
  if (verdict.left.task === "tensor" && verdict.right.task === "tensor") return null;
  return (
    <>
      {text} <code>tensor</code>
    </>
  );
}

const GLYPHS: Record<string, RoleName> = {
  origin: "origin",
  inherited: "inherited",
  amplified: "amplified",
  healed: "healed",
  left_only: "unmatched",
  right_only: "unmatched",
  no_data: "nodata",
  not_comparable: "notcomparable",
};

function RoleBadge({ node, origin }: { node: NodeDetail; origin: Origin | null }) {
  const { t } = useI18n();
  const words = t.compare;
  const glyph = origin !== null ? "origin" : GLYPHS[node.role];
  const bad = glyph === "origin" || glyph === "inherited" || glyph === "amplified";
  const plain = node.grade === "equal" ? words.roles.equal : node.grade === "no_pair" ? words.grades.no_pair : words.roles.none;
  const name =
    glyph === undefined
      ? plain
      : glyph === "nodata"
        ? words.roles.noData
        : glyph === "notcomparable"
          ? words.roles.notComparable
          : words.roles[glyph];
  return (
    <span className={`${styles.badge} ${bad ? styles.bad : glyph === "healed" ? styles.good : ""}`}>
      {glyph === undefined ? null : <RoleGlyph name={glyph} size={12} />}
      {origin === null ? name : `${words.roles.origin} · ${words.origins.kinds[origin.kind]}`}
    </span>
  );
}

function classesOf(records: NodeDetail["left"]): string {
  return [...new Set(records.map((record) => record.class).filter((name): name is string => name !== null && name !== ""))].join(", ");
}

function Classes({ node }: { node: NodeDetail }) {
  const { t } = useI18n();
  const words = t.compare.detail;
  const left = classesOf(node.left);
  const right = classesOf(node.right);
  // A gradient's entry belongs to its module's backward call and is no call of its own.
  const calls = (records: NodeDetail["left"]) => String(records.filter(({ name }) => !/\.parameters_grad(\.\d+)?$/.test(name)).length);
  const relation = words.relationCount(calls(node.left), calls(node.right), words.relations[node.relation]);
  return (
    <span className={styles.classes}>
      {left === "" ? null : (
        <span>
          <SideMark side="left" /> {left}
        </span>
      )}
      {node.left.length > 0 && node.right.length > 0 ? <span className={styles.relation}>{relation}</span> : null}
      {right === "" ? null : (
        <span>
          <SideMark side="right" /> {right}
        </span>
      )}
    </span>
  );
}

/** More causes than the paragraph names: all of them, with their scores. */
function Causes({ origin }: { origin: Origin }) {
  const { t, language } = useI18n();
  return (
    <section className={styles.section}>
      <h3>{t.compare.detail.causes}</h3>
      <ul>
        {origin.causes.map((cause) => (
          <li key={cause.code} className={styles.cause}>
            <span>
              {cause.text[language]}
              {cause.advice ? <small> {cause.advice[language]}</small> : null}
            </span>
            <span className={styles.meter} aria-hidden="true">
              <i style={{ width: `${Math.round(Math.min(1, Math.max(0, cause.score)) * 100)}%` }} />
            </span>
            <span className={styles.score}>{cause.score.toFixed(2)}</span>
          </li>
        ))}
      </ul>
    </section>
  );
}

/** The names in the dumps, whole and to copy: what a reader greps for. */
function Records({ node }: { node: NodeDetail }) {
  const { t } = useI18n();
  if (node.left.length + node.right.length === 0) return null;
  return (
    <section className={styles.section}>
      <h3>{t.compare.detail.records}</h3>
      <ul>
        {(["left", "right"] as const).flatMap((side) =>
          node[side].map((record) => (
            <li key={`${side}-${record.name}`} className={styles.record}>
              <SideMark side={side} />
              <code>{record.name}</code>
              <CopyButton text={record.name} className={styles.copy} />
            </li>
          )),
        )}
      </ul>
    </section>
  );
}
