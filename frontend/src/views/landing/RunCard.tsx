import { Link } from "wouter";
import type { Run } from "../../api/types";
import { useI18n } from "../../i18n";
import { errorSentence, problemSentence } from "../../i18n/errors";
import { bytes } from "../../i18n/format";
import { Button } from "../../ui/button";
import { Glyph } from "../../ui/glyph";
import { type Side, SideMark } from "../../ui/side";
import { isSettled, type SideView, sides } from "../../upload/side";
import { CardProgress } from "./CardProgress";
import { Preflight } from "./Preflight";
import styles from "./side-panel.module.css";
import type { SideHolding } from "./use-side";

export type HeldView = Extract<SideView, { phase: "sending" | "creating" | "run" | "refused" }>;

interface Props {
  side: Side;
  /** "Train", "Inference", "Left" or "Right". */
  title: string;
  /** What a screen reader hears of the side as a whole. */
  name: string;
  holding: SideHolding;
  view: HeldView;
  other: SideHolding;
  onReplace: () => void;
}

/** What a side holds: how far it is, what it is, and what can be done with it. */
export function RunCard({ side, title, name, holding, view, other, onReplace }: Props) {
  const { language } = useI18n();
  const problem = problemOfSide(holding, view, language);
  const canSwap = isSettled(view) && isSettled(other.view);
  return (
    <div className={styles.card}>
      <header className={styles.cardHeader}>
        <SideMark side={side} />
        <h2 className={styles.cardTitle}>
          <span className={styles.sideName}>{title}</span>{" "}
          <span className={styles.runName} title={view.name}>
            {view.phase === "run" && holding.run !== null ? <Link href={`/r/${view.id}`}>{holding.run.name}</Link> : view.name}
          </span>
        </h2>
        <CardProgress name={name} view={view} run={holding.run} failed={problem !== null} />
      </header>
      {problem === null ? (
        <Preflight side={side} view={view} run={holding.run} other={other} canSwap={canSwap} />
      ) : (
        <div className={styles.problem} role="alert">
          <Glyph name="failed" />
          <p>{problem}</p>
        </div>
      )}
      <footer className={styles.cardFooter}>
        <p className={styles.note}>
          <FooterNote view={view} />
        </p>
        <CardButtons side={side} view={view} failed={problem !== null} onReplace={onReplace} />
      </footer>
    </div>
  );
}

/** One sentence on why this side cannot be compared; null where it can, or will be able to. */
function problemOfSide(
  { run, runError }: { run: Run | null; runError: Error | null },
  view: HeldView,
  language: "en" | "zh",
): string | null {
  if (view.phase === "refused") return problemSentence(view.problem, language);
  if (run?.state === "failed" && run.error !== null) return problemSentence(run.error, language);
  if (view.phase === "run" && runError !== null) return errorSentence(runError, language);
  return null;
}

/** That it resumed is said until the side holds something else: a short rest of a file is sent faster than anybody reads. */
function FooterNote({ view }: { view: HeldView }) {
  const { t, format } = useI18n();
  if (view.phase !== "sending") {
    const resumed = view.phase === "refused" ? 0 : (view.resumed ?? 0);
    return resumed > 0 ? t.card.resumed(bytes(resumed)) : null;
  }
  const { resumed, files, filesDone } = view.transfer;
  const note = resumed > 0 ? t.card.resumed(bytes(resumed)) : t.card.resumes;
  return files === 1 ? note : `${note} · ${t.card.files(format.count(filesDone), format.count(files))}`;
}

function CardButtons({ side, view, failed, onReplace }: { side: Side; view: HeldView; failed: boolean; onReplace: () => void }) {
  const { t } = useI18n();
  const upload = sides[side];
  return (
    <div className={styles.cardButtons}>
      {failed ? <Button onClick={onReplace}>{t.card.replace}</Button> : null}
      {view.phase === "refused" && view.about !== null && view.about.files > 0 ? (
        <Button onClick={() => void upload.again()}>{t.card.retry}</Button>
      ) : null}
      {view.phase === "sending" ? (
        view.transfer.state === "paused" ? (
          <Button onClick={() => upload.resume()}>{t.card.resume}</Button>
        ) : (
          <Button onClick={() => upload.pause()}>{t.card.pause}</Button>
        )
      ) : null}
      <Button look="quiet" onClick={() => upload.remove()}>
        {t.card.remove}
      </Button>
    </div>
  );
}
