import { useCallback, useMemo, useState } from "react";
import type { Comparison, RunPart, RunVerdict } from "../../api/types";
import { useI18n } from "../../i18n";
import { canOpen, cellState, entryPart, firstCompared } from "../../model/parts";
import { Button } from "../../ui/button";
import { type Command, useCommands } from "../../ui/commands";
import { SharePanel } from "../../ui/share-panel";
import { useViewState } from "../../use-view-state";
import { ExportMenu } from "../export/ExportMenu";
import { KeyDataPanel } from "../key-data/KeyDataPanel";
import { CompareAgain } from "../options/CompareAgain";
import { Chain } from "./Chain";
import { goToTables, openPart, openTable } from "./open";
import { Pairing } from "./Pairing";
import { PartsGrid } from "./PartsGrid";
import { PartsList } from "./PartsList";
import { Pipeline } from "./Pipeline";
import { PipelinePending } from "./PipelinePending";
import styles from "./parts-page.module.css";
import { RetryPart } from "./RetryPart";
import { RetryParts } from "./RetryParts";
import { WhatItRestsOn } from "./RunFindings";
import { RunLegend } from "./RunLegend";
import { RunSections } from "./RunSections";
import { RunVerdictBlock } from "./RunVerdictBlock";
import { openingKey } from "./run-words";
import { sideNames } from "./words";

interface Props {
  comparison: Comparison;
  verdict: RunVerdict;
  slug: string;
  /** The part that the reader comes back from. */
  from: number | null;
}

/** The overview of a run verdict: the answer, key data along the pipeline, the parts as stage × step × rank, and what stands behind them. */
export function PartsPage({ comparison, verdict, slug, from }: Props) {
  const { t, format } = useI18n();
  const [{ table }] = useViewState();
  const part = firstCompared(verdict);
  const first = part?.n ?? null;
  const firstCell = useMemo(
    () => (part === null ? null : { n: part.n, rank: verdict.first?.rank ?? null, word: t.parts.first }),
    [part, verdict.first, t],
  );
  const entry = verdict.parts.some(({ n }) => n === from) ? from : (entryPart(verdict)?.n ?? null);
  const names = useMemo(() => sideNames(comparison, t), [comparison, t]);
  const [sharing, setSharing] = useState(false);
  const [exporting, setExporting] = useState(false);
  const action = useCallback(
    (one: RunPart) => <RetryPart key={one.n} slug={slug} comparison={comparison} part={one} />,
    [slug, comparison],
  );
  // A run of one part: its tree is what the reader came for, whatever stands beside it.
  const only = verdict.parts.length === 1 && verdict.parts[0] !== undefined && canOpen(verdict.parts[0]) ? verdict.parts[0].n : null;
  const keys = verdict.key_data;
  // The part that would tell where it begins failed: what differs are the tables alone.
  const leading = verdict.first_part == null || part !== null ? null : (keys.find(({ key }) => key === verdict.first?.key_data)?.n ?? null);
  const target = first ?? only;
  const openWord = first !== null ? t.parts.openFirst : leading !== null ? t.parts.openKeyData : t.parts.openOnly;
  const openFirst = useCallback(() => (leading !== null ? goToTables(leading) : openPart(target)), [target, leading]);
  const opens = target !== null || leading !== null;
  const key = keys.find(({ n }) => n === table) ?? openingKey(verdict);
  useCommands(
    useMemo<readonly Command[]>(() => {
      const commands: Command[] = [
        { id: "share", title: t.share.title, group: "share", keys: ["y"], run: () => setSharing(true) },
        { id: "export", title: t.exports.title, group: "share", keys: ["e"], run: () => setExporting(true) },
      ];
      if (opens) commands.push({ id: "first-part", title: openWord, group: "move", keys: ["f"], run: openFirst });
      for (const { n, key: name } of keys) {
        commands.push({ id: `key-${n}`, title: t.loop.pipeline.open(name), group: "view", run: () => openTable(n) });
      }
      return commands;
    }, [t, opens, openWord, openFirst, keys]),
  );
  const states = useMemo(
    () => new Set(verdict.parts.flatMap((one) => [null, ...one.ranks].map((rank) => cellState({ part: one, rank })))),
    [verdict.parts],
  );
  const identical = verdict.parts.filter((one) => one.verdict === "identical").length;
  const hasChain = verdict.first !== null;
  return (
    <div className={styles.page}>
      <RunVerdictBlock
        verdict={verdict}
        retry={<RetryParts slug={slug} comparison={comparison} look="link" />}
        actions={
          <>
            {!opens ? null : (
              <Button look="primary" shortcut="f" onClick={openFirst}>
                {openWord}
              </Button>
            )}
            <CompareAgain comparison={comparison} slug={slug} />
            <ExportMenu
              slug={slug}
              keyData={keys.length > 0}
              done={comparison.state === "done"}
              open={exporting}
              onOpenChange={setExporting}
            >
              <Button>{t.exports.open}</Button>
            </ExportMenu>
            <SharePanel open={sharing} onOpenChange={setSharing}>
              <Button>{t.share.open}</Button>
            </SharePanel>
          </>
        }
      />
      {verdict.key_data_error == null ? null : <PipelinePending error={verdict.key_data_error} />}
      {keys.length === 0 ? null : <Pipeline verdict={verdict} names={names} selected={key?.n ?? null} onSelect={openTable} />}
      <div className={styles.columns} data-both={key !== null || hasChain}>
        <div className={styles.left}>
          {verdict.parts.length === 0 ? null : (
            <PartsGrid
              parts={verdict.parts}
              first={firstCell}
              entry={entry}
              returned={entry === from}
              names={names}
              onOpen={openPart}
              action={action}
            />
          )}
          <WhatItRestsOn verdict={verdict} />
          <RunSections verdict={verdict} names={names} />
          <Pairing comparison={comparison} verdict={verdict} />
        </div>
        {key !== null || hasChain ? (
          <div className={styles.right}>
            <Chain verdict={verdict} names={names} onTable={openTable} onPart={openPart} />
            {key === null ? null : <KeyDataPanel slug={slug} data={key} names={names} ready={comparison.state === "done"} />}
          </div>
        ) : null}
      </div>
      {verdict.parts.length === 0 ? null : <PartsList parts={verdict.parts} first={first} names={names} action={action} />}
      <RunLegend
        states={states}
        first={first === null ? null : t.loop.legend.first}
        line={verdict.parts.length === 0 ? "" : t.loop.legend.identical(format.count(identical), format.count(verdict.parts.length))}
      />
    </div>
  );
}
