import { ChevronDown, ChevronRight } from "lucide-react";
import { useState } from "react";
import type { NodeDetail } from "../../api/types";
import { useI18n } from "../../i18n";
import { SideMark } from "../../ui/side";
import { pairStacks, type StackFrame } from "./stacks";
import styles from "./stacks.module.css";

/** One line while folded: how many frames differ, how many are the framework's. Opened: both stacks, innermost first. */
export function Stacks({ stacks, note }: { stacks: NodeDetail["stacks"]; note: React.ReactNode }) {
  const { t, format } = useI18n();
  const words = t.compare.detail;
  const [open, setOpen] = useState(false);
  const [whole, setWhole] = useState(false);
  const pair = pairStacks(stacks.left, stacks.right);
  const none = stacks.left.length + stacks.right.length === 0;
  return (
    <section className={styles.stacks} aria-label={words.stacks}>
      <div className={styles.line}>
        <button type="button" className={styles.toggle} aria-expanded={open} disabled={none} onClick={() => setOpen(!open)}>
          {none ? null : open ? <ChevronDown size={13} aria-hidden="true" /> : <ChevronRight size={13} aria-hidden="true" />}
          <b>{words.stacks}</b>
          <span>
            {none
              ? words.stacksNone
              : pair.differing > 0
                ? words.stacksDiffer(pair.differing, format.count(pair.differing))
                : words.stacksSame}
          </span>
          {pair.folded > 0 ? <span className={styles.muted}>· {words.stacksFolded(format.count(pair.folded))}</span> : null}
        </button>
        <span className={styles.note}>{note}</span>
      </div>
      {open ? (
        <>
          <div className={styles.columns}>
            <Side side="left" frames={pair.left} whole={whole} />
            <Side side="right" frames={pair.right} whole={whole} />
          </div>
          {pair.folded > 0 ? (
            <button type="button" className={styles.more} onClick={() => setWhole(!whole)}>
              {whole ? words.hideFramework : words.showFramework}
            </button>
          ) : null}
        </>
      ) : null}
    </section>
  );
}

function Side({ side, frames, whole }: { side: "left" | "right"; frames: readonly StackFrame[]; whole: boolean }) {
  const { t } = useI18n();
  const shown = whole ? frames : frames.filter((frame) => !frame.framework);
  return (
    <ol className={styles.side}>
      {shown.length === 0 ? <li className={styles.muted}>{frames.length === 0 ? t.compare.detail.stacksNone : "…"}</li> : null}
      {shown.map((frame, place) => (
        // biome-ignore lint/suspicious/noArrayIndexKey: frames repeat and never move
        <li key={place} className={frame.only ? styles.only : frame.framework ? styles.muted : undefined} title={frame.text}>
          <SideMark side={side} />
          <span>
            <code>{frame.function === "" ? frame.text : `${frame.function}  ${frame.file.split("/").at(-1)}:${frame.line}`}</code>
            {frame.code === "" ? null : <code className={styles.code}>{frame.code}</code>}
          </span>
        </li>
      ))}
    </ol>
  );
}
