import { useMutation, useQueryClient } from "@tanstack/react-query";
import { useLocation } from "wouter";
import { retryComparison } from "../../api/queries";
import type { Comparison } from "../../api/types";
import { useI18n } from "../../i18n";
import { errorSentence, problemSentence } from "../../i18n/errors";
import { isOneSided } from "../../model/parts";
import { Button } from "../../ui/button";
import { Notice } from "../../ui/notice";
import { type Side, SideMark } from "../../ui/side";
import { sideTitles } from "../../ui/side-words";
import { CompareAgain } from "../options/CompareAgain";
import styles from "./ended.module.css";
import { worthRetrying } from "./stage";

interface Props {
  slug: string;
  comparison: Comparison;
  stage: "failed" | "cancelled" | "interrupted";
}

/** A comparison that ended without a verdict: why, whose fault, and what to do. */
export function Ended({ slug, comparison, stage }: Props) {
  const { t, language } = useI18n();
  const [, navigate] = useLocation();
  const queries = useQueryClient();
  const retry = useMutation({ mutationFn: () => retryComparison(queries, slug) });
  const { error, left, right } = comparison;
  const canRetry = !comparison.read_only && (stage !== "failed" || error === null || worthRetrying(error.code));
  const titles = { failed: t.comparison.failedTitle, cancelled: t.comparison.cancelledTitle, interrupted: t.comparison.interruptedTitle };
  const { loop, parts } = comparison;
  const kept = parts.length > 1 && (loop?.state === "done" || parts.some((part) => part.state === "done" && !isOneSided(part)));
  const cancelled = kept ? t.comparison.cancelledKept : t.comparison.cancelledText;
  const texts = { failed: null, cancelled, interrupted: t.comparison.interruptedText };
  return (
    <Notice
      glyph={stage}
      title={titles[stage]}
      role="alert"
      actions={
        <>
          {canRetry ? (
            <Button look="primary" aria-disabled={retry.isPending} onClick={() => retry.mutate()}>
              {retry.isPending ? t.comparison.retrying : t.comparison.retry}
            </Button>
          ) : null}
          {left.state === "failed" || right.state === "failed" ? null : <CompareAgain comparison={comparison} slug={slug} />}
          <Button onClick={() => navigate("/")}>{canRetry ? t.common.back : t.comparison.chooseOther}</Button>
        </>
      }
    >
      {stage === "failed" && error !== null ? <FailedSide comparison={comparison} /> : null}
      {error === null ? null : <p className={styles.sentence}>{problemSentence(error, language)}</p>}
      {texts[stage] === null ? null : <p>{texts[stage]}</p>}
      {retry.error === null ? null : <p className={styles.problem}>{errorSentence(retry.error, language)}</p>}
    </Notice>
  );
}

/** Which of the two dumps is to blame, where one is. */
function FailedSide({ comparison }: { comparison: Comparison }) {
  const { t } = useI18n();
  const { left, right } = comparison;
  const side: Side | null = left.state === "failed" ? "left" : right.state === "failed" ? "right" : null;
  if (side === null) return null;
  return (
    <p className={styles.side}>
      <SideMark side={side} />
      {sideTitles(left, right, t)[side]} <strong>{comparison[side].name}</strong>
    </p>
  );
}
