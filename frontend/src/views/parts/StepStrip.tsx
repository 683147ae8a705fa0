import { type PointerEvent, useMemo, useRef } from "react";
import type { RunPart } from "../../api/types";
import { useI18n } from "../../i18n";
import { type CellState, worstOfSteps } from "../../model/parts";
import styles from "./step-strip.module.css";

interface Props {
  parts: readonly RunPart[];
  /** The step of the first divergence. */
  first: number | null | undefined;
  /** What of the matrix is in sight, as shares of its width. */
  from: number;
  to: number;
  left: number;
  width: number;
  onMove: (share: number) => void;
}

const HEIGHT = 16;

/** All steps at once above a matrix that is wider than the page: the worst of each, and which of them are in sight. A press goes there. */
export function StepStrip({ parts, first, from, to, left, width, onMove }: Props) {
  const { t } = useI18n();
  const pressed = useRef(false);
  const steps = useMemo(() => worstOfSteps(parts), [parts]);
  const pitch = width / Math.max(1, steps.length);
  const column = Math.max(1, pitch - (pitch > 4 ? 1 : 0)).toFixed(2);
  const columnsOf = (...states: readonly CellState[]) =>
    steps.map(({ state }, at) => (states.includes(state) ? `M${(at * pitch).toFixed(2)} 3h${column}v10h-${column}z` : "")).join("");
  const firstAt = first === undefined ? -1 : steps.findIndex(({ step }) => step === first);
  const go = (event: PointerEvent<SVGSVGElement>) => onMove((event.clientX - event.currentTarget.getBoundingClientRect().left) / width);
  return (
    <svg
      className={styles.strip}
      style={{ marginLeft: left }}
      width={width}
      height={HEIGHT}
      viewBox={`0 0 ${width} ${HEIGHT}`}
      role="img"
      aria-label={t.parts.stripLabel}
      onPointerDown={(event) => {
        pressed.current = true;
        event.currentTarget.setPointerCapture(event.pointerId);
        go(event);
      }}
      onPointerMove={(event) => pressed.current && go(event)}
      onPointerUp={() => {
        pressed.current = false;
      }}
    >
      <title>{t.parts.stripLabel}</title>
      <path className={styles.quiet} d={columnsOf("identical", "consistent")} />
      <path className={styles.other} d={columnsOf("not_comparable", "left_only", "right_only", "queued", "running", "cancelled")} />
      <path className={styles.bad} d={columnsOf("diverged", "failed")} />
      {firstAt < 0 ? null : <rect className={styles.first} x={firstAt * pitch} y="0" width={Math.max(3, pitch)} height={HEIGHT} />}
      <rect
        className={styles.window}
        x={from * width + 1}
        y="1"
        width={Math.max(6, (Math.min(1, to) - from) * width - 2)}
        height={HEIGHT - 2}
        rx="2"
      />
    </svg>
  );
}
