import { type ReactNode, useCallback, useMemo, useRef, useState } from "react";
import { asRequestError } from "../../api/problem";
import { useAbout } from "../../api/queries";
import type { Comparison, PartVerdict, Verdict } from "../../api/types";
import { useI18n } from "../../i18n";
import { bytes } from "../../i18n/format";
import { isWritten } from "../../model/parts";
import { at, NO_ROW } from "../../model/rows";
import { TreeFormatError } from "../../model/tree";
import { announce } from "../../ui/announce";
import { Button } from "../../ui/button";
import { type Command, useCommands } from "../../ui/commands";
import { copyText } from "../../ui/copy";
import { SharePanel, shareLink } from "../../ui/share-panel";
import type { ViewTab } from "../../url-state";
import { flushViewState } from "../../use-view-state";
import { ExportMenu } from "../export/ExportMenu";
import { type Matching, MatchPanel, matchChoices } from "../mapping/MatchPanel";
import { useCompareAgain } from "../options/CompareAgain";
import { SettingsButton, SettingsDialog } from "../parts/SettingsDialog";
import { Detail } from "./Detail";
import { Graph } from "./Graph";
import { LayersTable } from "./LayersTable";
import { Legend } from "./Legend";
import { NotComparable } from "./NotComparable";
import { OriginsList } from "./OriginsList";
import { QueryBox } from "./QueryBox";
import { useArrived } from "./queries";
import { Timeline } from "./Timeline";
import { TreeTable } from "./TreeTable";
import toolbar from "./toolbar.module.css";
import tree from "./tree.module.css";
import type { Actions } from "./use-actions";
import { type Bench, type BenchOf, useBench } from "./use-bench";
import { useBenchCommands } from "./use-bench-commands";
import { VerdictBlock } from "./VerdictBlock";
import styles from "./workbench.module.css";

interface Props {
  comparison: Comparison;
  verdict: Verdict;
  slug: string;
  part: number | null;
  readOnly: boolean;
}

/** The page of one part. A run verdict has parts of its own and is drawn by whoever chooses among them. */
export function Workbench({ comparison, verdict, slug, part }: Props) {
  if (verdict.schema !== "probe-web/verdict/1") return null;
  const written = isWritten(comparison, part);
  return <PartWorkbench key={slug} comparison={comparison} verdict={verdict} slug={slug} part={part} done={written} />;
}

function PartWorkbench({ comparison, verdict, slug, part, done }: BenchOf & { comparison: Comparison }) {
  const { t } = useI18n();
  const words = t.compare;
  const bench = useBench({ verdict, slug, part, done });
  const { index, selected, view, actions, phone, tab, setTab } = bench;
  const share = useShare();
  const [exporting, setExporting] = useState(false);
  const [configured, setConfigured] = useState(false);
  const [matching, setMatching] = useState<Matching | null>(null);
  const choices = matchChoices(comparison, index?.tree ?? null, selected);
  const begin = useCallback(
    (kind: Matching["kind"]) => {
      setMatching({ kind, row: selected });
      if (phone) setTab("tree");
    },
    [selected, phone, setTab],
  );
  const queryInput = useRef<HTMLInputElement>(null);
  const root = useRef<HTMLDivElement>(null);
  const focusTree = useCallback(() => root.current?.querySelector<HTMLElement>("[role=treegrid], [role=tree]")?.focus(), []);
  useCommands(useBenchCommands(bench, share.copy, () => focusQuery(queryInput, bench), verdict));
  useCommands(
    useMemo<readonly Command[]>(
      () => [
        { id: "export", title: t.exports.title, group: "share", keys: ["e"], run: () => setExporting(true) },
        ...(choices.match ? [{ id: "match", title: t.mapping.match, group: "view" as const, keys: ["m"], run: () => begin("match") }] : []),
        ...(choices.unmatch
          ? [{ id: "unmatch", title: t.mapping.unmatch, group: "view" as const, keys: ["M"], run: () => begin("unmatch") }]
          : []),
      ],
      [t, choices.match, choices.unmatch, begin],
    ),
  );

  const origin = index === null || selected === NO_ROW ? -1 : at(index.tree.origin, selected);
  const detail = (
    <Detail
      slug={slug}
      part={part}
      row={selected}
      verdict={verdict}
      origin={origin >= 0 && verdict.origins[origin] !== undefined ? { index: origin, origin: verdict.origins[origin] } : null}
      ignored={view.ignored.includes(origin)}
      sides={bench.sides}
      brief={phone && tab === "verdict"}
      onIgnore={actions.ignore}
      onCopyLink={share.copy}
      onMatch={choices.match ? () => begin("match") : null}
      onUnmatch={choices.unmatch ? () => begin("unmatch") : null}
    />
  );
  const timeline = (
    <Timeline
      index={index}
      origins={verdict.origins}
      ignored={view.ignored}
      selected={selected}
      brush={view.brush}
      sides={bench.sides}
      compact={phone}
      tall={phone && tab === "timeline"}
      onSelect={actions.goTo}
      onBrush={actions.setBrush}
    />
  );
  const again = useCompareAgain(comparison, slug);
  const exportMenu = (
    <>
      {again.button}
      <ExportMenu slug={slug} keyData={false} done={comparison.state === "done"} open={exporting} onOpenChange={setExporting}>
        <Button>{t.exports.open}</Button>
      </ExportMenu>
    </>
  );
  const verdictBlock = (
    <VerdictBlock
      verdict={verdict}
      actions={<VerdictActions verdict={verdict} actions={actions} share={share} exportMenu={exportMenu} />}
      settings={<SettingsButton verdict={verdict} onOpen={() => setConfigured(true)} />}
    />
  );
  const settings = configured ? (
    <SettingsDialog
      verdict={verdict}
      names={{ left: comparison.left.name, right: comparison.right.name }}
      onClose={() => setConfigured(false)}
    />
  ) : null;
  const origins = (
    <OriginsList origins={verdict.origins} index={index} selected={selected} ignored={view.ignored} onSelect={actions.goToOrigin} />
  );
  const body = (
    <>
      <Toolbar bench={bench} verdict={verdict} input={queryInput} onLeave={focusTree} />
      {matching === null || index === null ? null : (
        <MatchPanel
          key={`${matching.kind}-${matching.row}`}
          comparison={comparison}
          slug={slug}
          part={part}
          tree={index.tree}
          matching={matching}
          selected={selected}
          onClose={() => setMatching(null)}
        />
      )}
      {tab === "layers" ? (
        <LayersTable verdict={verdict} index={index} selected={selected} sides={bench.sides} onSelect={actions.goTo} />
      ) : (
        <TreeArea bench={bench} verdict={verdict} />
      )}
    </>
  );
  const side =
    verdict.verdict === "not_comparable" ? <NotComparable verdict={verdict}>{selected === NO_ROW ? null : detail}</NotComparable> : detail;

  const page = phone ? (
    <div ref={root} className={styles.phone} data-tab={tab}>
      <div className={styles.phoneBody}>
        {tab === "verdict" ? verdictBlock : null}
        {tab === "verdict" || tab === "timeline" ? timeline : null}
        {tab === "verdict" || tab === "timeline" ? origins : null}
        {tab === "verdict" || tab === "detail" ? side : null}
        {tab === "tree" || tab === "layers" ? body : null}
      </div>
      <PhoneTabs bench={bench} />
    </div>
  ) : (
    <div ref={root} className={styles.workbench}>
      {verdictBlock}
      <div className={styles.columns}>
        <section
          className={styles.left}
          aria-label={tab === "layers" ? words.layers.label : tab === "graph" ? words.graph.label : words.tree.label}
        >
          {body}
        </section>
        <div className={styles.right}>{side}</div>
      </div>
      {timeline}
      <Legend verdict={verdict} />
    </div>
  );
  return (
    <>
      {page}
      {settings}
      {again.dialog}
    </>
  );
}

function PhoneTabs({ bench: { tab, setTab } }: { bench: Bench }) {
  const { t } = useI18n();
  const words = t.compare.tabs;
  return (
    <nav className={styles.phoneTabs} aria-label={words.label}>
      {(["verdict", "tree", "timeline", "detail"] as const).map((name) => (
        <button
          key={name}
          type="button"
          aria-current={tab === name || (name === "tree" && tab === "layers") ? "page" : undefined}
          onClick={() => setTab(name)}
        >
          {words[name]}
        </button>
      ))}
    </nav>
  );
}

function useShare() {
  const { t } = useI18n();
  const about = useAbout();
  const [open, setOpen] = useState(false);
  const publicUrl = about.data?.public_url ?? null;
  const copy = useCallback(async () => {
    flushViewState();
    const copied = await copyText(shareLink(publicUrl, window.location.origin));
    if (copied) announce(t.compare.detail.linkCopied);
    // Where a page may not copy, the panel stands open with the link selected.
    else setOpen(true);
  }, [publicUrl, t]);
  return { open, setOpen, copy: useCallback(() => void copy(), [copy]) };
}

interface ActionsProps {
  verdict: PartVerdict;
  actions: Actions;
  share: ReturnType<typeof useShare>;
  exportMenu: ReactNode;
}

function VerdictActions({ verdict, actions, share, exportMenu }: ActionsProps) {
  const { t } = useI18n();
  const words = t.compare.verdict;
  const count = verdict.origins.length;
  return (
    <>
      {count > 1 ? (
        <Button look="primary" shortcut="n" onClick={() => actions.stepOrigin(1)}>
          {words.next}
        </Button>
      ) : count === 1 ? (
        <Button look="primary" shortcut="f" onClick={actions.firstDivergence}>
          {words.show}
        </Button>
      ) : null}
      {exportMenu}
      <SharePanel open={share.open} onOpenChange={share.setOpen}>
        <Button look={count === 0 ? "primary" : "plain"}>{t.share.open}</Button>
      </SharePanel>
    </>
  );
}

interface ToolbarProps {
  bench: Bench;
  verdict: PartVerdict;
  input: React.RefObject<HTMLInputElement | null>;
  onLeave: () => void;
}

function Toolbar({ bench, verdict, input, onLeave }: ToolbarProps) {
  const { t } = useI18n();
  const words = t.compare;
  const { index, view, actions, tab, layered, selected } = bench;
  const pictures: ViewTab[] = bench.phone ? ["tree"] : ["tree", "graph"];
  const tabs: ViewTab[] = !layered ? pictures : bench.own === "layers" ? ["layers", ...pictures] : [...pictures, "layers"];
  const own = index === null || selected === NO_ROW ? -1 : at(index.tree.origin, selected);
  const total = verdict.origins.length;
  return (
    <div className={toolbar.toolbar}>
      {tabs.length > 1 ? (
        <div className={toolbar.tabs} role="tablist" aria-label={words.tabs.label}>
          {tabs.map((name) => (
            <button key={name} type="button" role="tab" aria-selected={tab === name} onClick={() => bench.setTab(name)}>
              {words.tabs[name]}
            </button>
          ))}
        </div>
      ) : null}
      <QueryBox
        input={input}
        text={view.query}
        filter={bench.filter}
        hasNorm={index?.tree.norm !== null}
        rows={index?.tree.rows ?? 0}
        brush={view.brush}
        ignored={view.ignored.length}
        onText={(text) => {
          actions.setQuery(text);
          if (text !== "" && tab === "layers") bench.setTab("tree");
        }}
        onBrushClear={() => actions.setBrush(null)}
        onIgnoredClear={actions.bringBack}
        onLeave={onLeave}
      />
      {total > 0 ? (
        <span className={toolbar.position}>
          {own >= 0
            ? words.origins
                .position(String(own + 1), String(total))
                .split("*")
                .map((text, place) => (place === 1 ? <b key="number">{text}</b> : text))
            : words.verdict.originsFound(total, String(total))}
        </span>
      ) : null}
    </div>
  );
}

function focusQuery(input: React.RefObject<HTMLInputElement | null>, bench: Bench): void {
  if (bench.phone && bench.tab !== "tree") bench.setTab("tree");
  window.setTimeout(() => {
    input.current?.focus();
    input.current?.select();
  }, 0);
}

/** The tree, or the state it is in before it can be one. */
function TreeArea({ bench, verdict }: { bench: Bench; verdict: PartVerdict }) {
  const { t, format } = useI18n();
  const words = t.compare;
  const { index, visible, filter, loading } = bench;
  if (loading.error !== null && index === null) {
    const broken = loading.error instanceof TreeFormatError;
    return (
      <div className={tree.empty} role="alert">
        <p>{broken ? words.tree.broken : words.tree.failed}</p>
        <p>
          <code>{broken ? loading.error.message : asRequestError(loading.error).problem.message}</code>
        </p>
        <Button onClick={() => void loading.refetch()}>{words.tree.retry}</Button>
      </div>
    );
  }
  if (index === null || visible === null || filter === null) return <TreePending verdict={verdict} done={bench.done} />;
  if (index.tree.rows === 0) return <p className={tree.empty}>{words.tree.empty}</p>;
  if (visible.length === 0) {
    return (
      <div className={tree.empty}>
        <p>{words.query.nothing}</p>
        <Button onClick={() => bench.change({ query: "", brush: null })}>{words.query.clear}</Button>
        <span className="visually-hidden" role="status">
          {words.query.rows("0", format.count(index.tree.rows))}
        </span>
      </div>
    );
  }
  if (bench.tab === "graph") {
    return (
      <Graph
        index={index}
        view={visible}
        selected={bench.selected}
        reveal={bench.reveal}
        anchor={bench.view.anchor}
        sides={bench.sides}
        onSelect={bench.actions.select}
        onToggle={bench.actions.toggle}
        onAnchor={bench.onAnchor}
      />
    );
  }
  return (
    <TreeTable
      index={index}
      view={visible}
      filter={filter}
      opened={bench.opened}
      closed={bench.closed}
      selected={bench.selected}
      reveal={bench.reveal}
      anchor={bench.view.anchor}
      origins={verdict.origins}
      sides={bench.sides}
      onSelect={bench.actions.select}
      onToggle={bench.actions.toggle}
      onAnchor={bench.onAnchor}
    />
  );
}

function TreePending({ verdict, done }: { verdict: PartVerdict; done: boolean }) {
  const { t, format } = useI18n();
  const words = t.compare.tree;
  const arrived = useArrived();
  return (
    <div className={tree.pending} role="status">
      <p>{done ? words.loading(format.count(verdict.counts.pairs)) : t.comparison.treePending}</p>
      {done && arrived.bytes > 0 ? <p>{bytes(arrived.bytes)}</p> : null}
    </div>
  );
}
