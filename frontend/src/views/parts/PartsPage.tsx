import { useCallback, useMemo, useState } from "react";
import type { Comparison, RunVerdict } from "../../api/types";
import { useI18n } from "../../i18n";
import { Button } from "../../ui/button";
import { type Command, useCommands } from "../../ui/commands";
import { SharePanel } from "../../ui/share-panel";
import { DEFAULT_VIEW } from "../../url-state";
import { changeView } from "../../use-view-state";
import { entryPart, firstPart } from "./matrix";
import { PartsGrid } from "./PartsGrid";
import { PartsList } from "./PartsList";
import styles from "./parts-page.module.css";
import { RunVerdictBlock } from "./RunVerdictBlock";
import { sideNames } from "./words";

interface Props {
  comparison: Comparison;
  verdict: RunVerdict;
  /** The part that the reader comes back from. */
  from: number | null;
}

/** Opens a part afresh; Back leads to where the reader was. */
export function openPart(part: number | null): void {
  changeView({ ...DEFAULT_VIEW, part }, "push");
}

/** The overview of a run verdict: the answer, the parts as stage × step, and the parts as a list. */
export function PartsPage({ comparison, verdict, from }: Props) {
  const { t } = useI18n();
  const first = firstPart(verdict)?.n ?? null;
  const entry = verdict.parts.some(({ n }) => n === from) ? from : (entryPart(verdict)?.n ?? null);
  const names = useMemo(() => sideNames(comparison), [comparison]);
  const [sharing, setSharing] = useState(false);
  const openFirst = useCallback(() => openPart(first), [first]);
  useCommands(
    useMemo<readonly Command[]>(() => {
      const share: Command = { id: "share", title: t.share.title, group: "share", keys: ["y"], run: () => setSharing(true) };
      return first === null ? [share] : [{ id: "first-part", title: t.parts.openFirst, group: "move", keys: ["f"], run: openFirst }, share];
    }, [t, first, openFirst]),
  );
  return (
    <div className={styles.page}>
      <RunVerdictBlock
        verdict={verdict}
        actions={
          <>
            {first === null ? null : (
              <Button look="primary" shortcut="f" onClick={openFirst}>
                {t.parts.openFirst}
              </Button>
            )}
            <SharePanel open={sharing} onOpenChange={setSharing}>
              <Button>{t.share.open}</Button>
            </SharePanel>
          </>
        }
      />
      <PartsGrid parts={verdict.parts} first={first} entry={entry} returned={entry === from} names={names} onOpen={openPart} />
      <PartsList parts={verdict.parts} first={first} names={names} />
    </div>
  );
}
