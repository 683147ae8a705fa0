import { useMutation, useQueryClient } from "@tanstack/react-query";
import { useEffect, useState } from "react";
import { cancelComparison, usePartVerdict } from "../../api/queries";
import type { LoopDocument } from "../../api/run-verdict";
import type { Comparison } from "../../api/types";
import { useI18n } from "../../i18n";
import { errorSentence } from "../../i18n/errors";
import type { SoFar } from "../../model/parts";
import { announce } from "../../ui/announce";
import { Button } from "../../ui/button";
import { SharePanel } from "../../ui/share-panel";
import { VerdictHeading } from "../compare/VerdictHeading";
import verdict from "../compare/verdict.module.css";
import { placeName } from "../compare/words";
import styles from "./so-far.module.css";
import { soFarSentence } from "./words";

interface Props {
  slug: string;
  comparison: Comparison;
  soFar: SoFar;
  loop: LoopDocument | null;
}

/** Where the answer will stand: how many parts are compared, and the earliest that parts of those. Marked as what may still be overturned. */
export function SoFarBlock({ slug, comparison, soFar, loop }: Props) {
  const { t, language, format } = useI18n();
  const words = t.parts.provisional;
  const [sharing, setSharing] = useState(false);
  const { earliest, all, done, failed, running, waiting } = soFar;
  const { data } = usePartVerdict(slug, earliest?.n ?? 0, earliest !== null);
  const place = data?.first_divergence ?? data?.first_difference ?? null;
  const { where, what } = soFarSentence(soFar, place === null ? null : placeName(place.module), loop, t, language, format.count);
  // Read out when another part or table is the earliest, not with every part that is done.
  useEffect(() => {
    if (earliest !== null || loop?.first != null) announce(where);
  }, [earliest, loop, where]);
  const counts = [
    running > 0 ? words.running(format.count(running)) : "",
    waiting > 0 ? words.waiting(format.count(waiting)) : "",
    failed > 0 ? t.parts.counts.failed(failed, format.count(failed)) : "",
  ].filter(Boolean);
  return (
    <>
      <VerdictHeading
        sign="running"
        where={where}
        what={what}
        label={words.label}
        testId="so-far"
        belowClass={styles.below}
        actions={
          <>
            {comparison.read_only ? null : <Cancel slug={slug} requested={comparison.cancel_requested_at !== null} />}
            <SharePanel open={sharing} onOpenChange={setSharing}>
              <Button>{t.share.open}</Button>
            </SharePanel>
          </>
        }
      >
        <p className={verdict.second}>
          <b className={styles.chip}>{words.chip}</b>
          <span className={styles.note}>{[...counts, running + waiting === 0 ? words.reducing : words.note].join(" · ")}</span>
        </p>
        {loop?.first == null || earliest === null ? null : (
          <p className={styles.table}>{words.table(loop.first.key, loop.first.since[language], loop.first.meaning[language])}</p>
        )}
      </VerdictHeading>
      <div
        className={styles.bar}
        role="progressbar"
        aria-label={words.progress}
        aria-valuemin={0}
        aria-valuemax={all}
        aria-valuenow={done + failed}
        aria-valuetext={[words.compared(format.count(done), format.count(all)), ...counts].join(t.common.comma)}
      >
        <div className={styles.done} style={{ width: `${(100 * done) / Math.max(1, all)}%` }} />
        <div className={styles.failed} style={{ width: `${(100 * failed) / Math.max(1, all)}%` }} />
      </div>
    </>
  );
}

function Cancel({ slug, requested }: { slug: string; requested: boolean }) {
  const { t, language } = useI18n();
  const queries = useQueryClient();
  const cancel = useMutation({ mutationFn: () => cancelComparison(queries, slug) });
  const busy = requested || cancel.isPending;
  return (
    <>
      {cancel.error === null ? null : (
        <span role="alert" className={styles.problem}>
          {errorSentence(cancel.error, language)}
        </span>
      )}
      <Button aria-disabled={busy || undefined} onClick={() => cancel.mutate()}>
        {busy ? t.comparison.cancelling : t.comparison.cancel}
      </Button>
    </>
  );
}
