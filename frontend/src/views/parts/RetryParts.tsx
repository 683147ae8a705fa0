import { useMutation, useQueryClient } from "@tanstack/react-query";
import { retryComparison } from "../../api/queries";
import type { Comparison } from "../../api/types";
import { useI18n } from "../../i18n";
import { errorSentence } from "../../i18n/errors";
import { Button } from "../../ui/button";

/** Compares the parts that failed again; those that came out are not repeated. Nothing where none failed, or while others still run. */
export function RetryParts({ slug, comparison, look = "plain" }: { slug: string; comparison: Comparison; look?: "plain" | "link" }) {
  const { t, language, format } = useI18n();
  const queries = useQueryClient();
  const retry = useMutation({ mutationFn: () => retryComparison(queries, slug) });
  const failed = comparison.parts.filter(({ state }) => state === "failed").length;
  if (failed === 0 || comparison.read_only || comparison.state !== "done") return null;
  return (
    <>
      <Button look={look} aria-disabled={retry.isPending || undefined} onClick={() => retry.mutate()}>
        {retry.isPending ? t.comparison.retrying : t.parts.retryParts(failed, format.count(failed))}
      </Button>
      {retry.error === null ? null : <span role="alert">{errorSentence(retry.error, language)}</span>}
    </>
  );
}
