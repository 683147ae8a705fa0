import { type DragEvent, useRef, useState } from "react";
import { useI18n } from "../../i18n";
import type { Side } from "../../ui/side";
import { sameRole, sideTitles } from "../../ui/side-words";
import { chosen, entriesOf } from "../../upload/gather";
import { sides } from "../../upload/side";
import { EmptyZone } from "./EmptyZone";
import { RunCard } from "./RunCard";
import styles from "./side-panel.module.css";
import type { SideHolding } from "./use-side";

interface Props {
  side: Side;
  holding: SideHolding;
  other: SideHolding;
  /** The server would refuse what is dropped: nothing is taken. */
  closed: boolean;
}

/** One side: takes drops and chosen files in every state, and shows what it holds. A new drop replaces what was there. */
export function SidePanel({ side, holding, other, closed }: Props) {
  const { t } = useI18n();
  const upload = sides[side];
  const files = useRef<HTMLInputElement>(null);
  const folder = useRef<HTMLInputElement>(null);
  const [over, setOver] = useState(false);
  /** Entering a child is told before leaving its parent: only the count says whether the pointer is still inside. */
  const depth = useRef(0);

  const carriesFiles = (event: DragEvent) => !closed && event.dataTransfer.types.includes("Files");
  const dragging = {
    onDragEnter: (event: DragEvent) => {
      if (!carriesFiles(event)) return;
      event.preventDefault();
      depth.current += 1;
      setOver(true);
    },
    onDragOver: (event: DragEvent) => {
      if (!carriesFiles(event)) return;
      event.preventDefault();
      event.dataTransfer.dropEffect = "copy";
    },
    onDragLeave: () => {
      depth.current = Math.max(0, depth.current - 1);
      if (depth.current === 0) setOver(false);
    },
    onDrop: (event: DragEvent) => {
      if (!carriesFiles(event)) return;
      event.preventDefault();
      depth.current = 0;
      setOver(false);
      void upload.drop(entriesOf(event.dataTransfer.items));
    },
  };

  const take = (field: HTMLInputElement) => {
    if (field.files !== null && field.files.length > 0) void upload.take(chosen(field.files));
    // The same files may be chosen again after a failure; without this the field would not notice.
    field.value = "";
  };

  const choose = { files: () => files.current?.click(), folder: () => folder.current?.click() };
  const runs = side === "left" ? ([holding.run, other.run] as const) : ([other.run, holding.run] as const);
  const title = sideTitles(...runs, t)[side];
  const name = sameRole(...runs) ? t.landing.zoneOf(title) : side === "left" ? t.landing.zoneTrain : t.landing.zoneInfer;
  return (
    <section aria-label={name} className={[styles.panel, styles[side], over ? styles.over : ""].filter(Boolean).join(" ")} {...dragging}>
      <input
        ref={files}
        type="file"
        multiple
        hidden
        disabled={closed}
        aria-label={`${name}: ${t.landing.chooseFiles}`}
        onChange={(event) => take(event.target)}
      />
      <input
        ref={folder}
        type="file"
        webkitdirectory=""
        hidden
        disabled={closed}
        aria-label={`${name}: ${t.landing.chooseFolder}`}
        onChange={(event) => take(event.target)}
      />
      {holding.view.phase === "empty" || holding.view.phase === "looking" || holding.view.phase === "lost" ? (
        <EmptyZone
          side={side}
          title={title}
          view={holding.view}
          over={over}
          closed={closed}
          onChooseFiles={choose.files}
          onChooseFolder={choose.folder}
        />
      ) : (
        <RunCard side={side} title={title} name={name} holding={holding} view={holding.view} other={other} onReplace={choose.files} />
      )}
    </section>
  );
}
