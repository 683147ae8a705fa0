import { useEffect } from "react";
import { useComparison } from "../../api/queries";
import type { Comparison, Verdict } from "../../api/types";
import { type I18n, useI18n } from "../../i18n";
import { announce } from "../../ui/announce";
import { Header } from "../../ui/header";
import { comparisonName } from "../../ui/headline";
import type { Language } from "../../ui/preferences";
import { useTitle } from "../../ui/use-title";
import { useViewState } from "../../use-view-state";
import { Workbench } from "../compare/Workbench";
import { Crumbs, Facts } from "./Crumbs";
import styles from "./comparison.module.css";
import { Ended } from "./Ended";
import { Running } from "./Running";
import { stageOf } from "./stage";
import { Unavailable } from "./Unavailable";

export default function ComparisonPage({ slug }: { slug: string }) {
  const i18n = useI18n();
  const { t } = i18n;
  const { data: comparison, error, isRefetchError } = useComparison(slug);
  const [{ part }] = useViewState();
  const stage = stageOf(comparison, error);
  useTitle(comparison === undefined ? t.product : t.comparison.documentTitle(titleOf(comparison, i18n.language)));
  useVerdictAnnounced(comparison?.verdict ?? null, i18n);

  return (
    <div className={styles.page}>
      <Header
        crumbs={comparison === undefined ? undefined : <Crumbs comparison={comparison} />}
        facts={comparison === undefined ? undefined : <Facts comparison={comparison} />}
      />
      {isRefetchError && stage !== "missing" ? (
        <p className={styles.stale} role="status">
          {t.comparison.stale}
        </p>
      ) : null}
      <main id="main" tabIndex={-1} className={styles.main}>
        <Body slug={slug} comparison={comparison} stage={stage} error={error} part={part} />
      </main>
    </div>
  );
}

interface BodyProps {
  slug: string;
  comparison: Comparison | undefined;
  stage: ReturnType<typeof stageOf>;
  error: Error | null;
  part: number | null;
}

function Body({ slug, comparison, stage, error, part }: BodyProps) {
  if (comparison === undefined || stage === "missing") return <Unavailable stage={stage} error={error} />;
  switch (stage) {
    case "verdict":
      return comparison.verdict === null ? null : (
        <Workbench comparison={comparison} verdict={comparison.verdict} slug={slug} part={part} readOnly={comparison.read_only} />
      );
    case "failed":
    case "cancelled":
    case "interrupted":
      return <Ended slug={slug} comparison={comparison} stage={stage} />;
    default:
      return <Running slug={slug} comparison={comparison} />;
  }
}

const MARKS = { diverged: "▲ ", consistent: "✓ ", identical: "✓ ", not_comparable: "∅ " } as const;

/** With the verdict's sign in front: a row of tabs can be told apart. */
function titleOf(comparison: Comparison, language: Language): string {
  const { verdict } = comparison;
  return (verdict === null ? "" : MARKS[verdict.verdict]) + comparisonName(comparison, language);
}

/** Read out when it arrives while the page is open, and when the page opens on it. */
function useVerdictAnnounced(verdict: Verdict | null, { language }: I18n): void {
  const sentence = verdict?.headline[language] ?? "";
  useEffect(() => {
    if (sentence !== "") announce(sentence);
  }, [sentence]);
}
