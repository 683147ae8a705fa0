import { useMutation, useQueryClient } from "@tanstack/react-query";
import { retryPart } from "../../api/queries";
import type { Comparison, RunPart } from "../../api/types";
import { useI18n } from "../../i18n";
import { errorSentence } from "../../i18n/errors";
import { Button } from "../../ui/button";
import styles from "./retry-part.module.css";
import { partName } from "./words";

interface Props {
  slug: string;
  comparison: Comparison;
  part: RunPart;
  look?: "plain" | "primary";
}

/** Compares one failed part again, also while others are still being compared. Nothing for a part that did not fail, or for who only looks. */
export function RetryPart({ slug, comparison, part, look = "plain" }: Props) {
  const { t, language } = useI18n();
  const queries = useQueryClient();
  const retry = useMutation({ mutationFn: () => retryPart(queries, slug, part.n) });
  if (part.state !== "failed" || comparison.read_only || comparison.state === "cancelled") return null;
  const word = retry.isPending ? t.comparison.retrying : t.parts.retryPart;
  return (
    <span className={styles.retry}>
      <Button
        look={look}
        aria-label={[word, partName(part, t)].join(t.common.comma)}
        aria-disabled={retry.isPending || undefined}
        onClick={() => retry.mutate()}
      >
        {word}
      </Button>
      {retry.error === null ? null : (
        <span role="alert" className={styles.problem}>
          {errorSentence(retry.error, language)}
        </span>
      )}
    </span>
  );
}
