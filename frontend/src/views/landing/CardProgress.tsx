import type { Run } from "../../api/types";
import { type Format, type Messages, useI18n } from "../../i18n";
import { bytes, bytesOf, share } from "../../i18n/format";
import type { TransferView } from "../../upload/transfer";
import type { HeldView } from "./RunCard";
import styles from "./side-panel.module.css";

interface Props {
  name: string;
  view: HeldView;
  run: Run | null;
  failed: boolean;
}

/** The figures at the right of a card's header and the bar below them. The bar keeps its place when it is full: nothing jumps. */
export function CardProgress({ name, view, run, failed }: Props) {
  const { t, format } = useI18n();
  const fraction = failed ? 0 : fractionOf(view, run);
  return (
    <>
      <p className={styles.figures}>{failed ? t.card.failed : statusLine(view, run, t, format)}</p>
      <div
        className={styles.bar}
        role="progressbar"
        aria-label={t.card.uploadOf(name)}
        aria-valuemin={0}
        aria-valuemax={100}
        aria-valuenow={Math.floor(fraction * 100)}
      >
        <div className={styles.barDone} style={{ transform: `scaleX(${fraction})` }} />
      </div>
    </>
  );
}

function fractionOf(view: HeldView, run: Run | null): number {
  if (view.phase === "sending") return view.transfer.total === 0 ? 0 : view.transfer.sent / view.transfer.total;
  if (view.phase === "creating") return 1;
  if (run?.state === "parsing") return run.progress.fraction ?? 0;
  return 1;
}

function statusLine(view: HeldView, run: Run | null, t: Messages, format: Format): string {
  if (view.phase === "sending") return sendingLine(view.transfer, t, format);
  if (view.phase === "creating" || run === null || run.state === "queued") return t.card.queued;
  if (run.state === "parsing") return parsingLine(run, t, format);
  return run.inventory === null ? t.card.ready : `${t.card.ready} · ${bytes(run.inventory.counts.bytes)}`;
}

function sendingLine(transfer: TransferView, t: Messages, format: Format): string {
  const [done, all] = bytesOf(transfer.sent, transfer.total);
  const progress = t.card.progress(share(transfer.sent, transfer.total), done, all);
  switch (transfer.state) {
    case "paused":
      return `${t.card.paused} · ${progress}`;
    case "offline":
      return `${transfer.retryIn ? t.card.offlineIn(format.duration(transfer.retryIn)) : t.card.offline} · ${progress}`;
    default: {
      if (transfer.stalled) return `${t.card.offline} · ${progress}`;
      if (transfer.sent >= transfer.total) return `${progress} · ${t.card.confirming}`;
      if (transfer.speed === null) return progress;
      const speed = t.card.speed(bytes(transfer.speed));
      const left = transfer.secondsLeft === null ? null : t.card.left(format.duration(Math.ceil(transfer.secondsLeft)));
      return [progress, speed, left].filter((part) => part !== null).join(" · ");
    }
  }
}

function parsingLine(run: Run, t: Messages, format: Format): string {
  const { fraction, records } = run.progress;
  if (fraction === undefined) return t.card.parsing;
  const percent = share(fraction, 1);
  return typeof records === "number" ? t.card.parsingNumbers(percent, format.count(records)) : t.card.parsingPercent(percent);
}
