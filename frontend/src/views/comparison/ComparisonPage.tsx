import { type ReactNode, useEffect, useRef } from "react";
import { useComparison } from "../../api/queries";
import type { Comparison, RunVerdict, Verdict } from "../../api/types";
import { type I18n, type Messages, useI18n } from "../../i18n";
import { partsSoFar } from "../../model/parts";
import { announce } from "../../ui/announce";
import { Header } from "../../ui/header";
import { comparisonName } from "../../ui/headline";
import { useTitle } from "../../ui/use-title";
import { useViewState } from "../../use-view-state";
import { Workbench } from "../compare/Workbench";
import { PartsPage } from "../parts/PartsPage";
import { PartsSoFar } from "../parts/PartsSoFar";
import { PartView } from "../parts/PartView";
import { partName } from "../parts/words";
import { Crumbs, Facts } from "./Crumbs";
import styles from "./comparison.module.css";
import { Ended } from "./Ended";
import { Running } from "./Running";
import { stageOf } from "./stage";
import { Unavailable } from "./Unavailable";

export default function ComparisonPage({ slug }: { slug: string }) {
  const i18n = useI18n();
  const { t } = i18n;
  const { data: comparison, error, isRefetchError, failureCount } = useComparison(slug);
  const [{ part }] = useViewState();
  const stage = stageOf(comparison, error);
  useTitle(comparison === undefined ? t.product : t.comparison.documentTitle(titleOf(comparison, part, i18n)));
  useVerdictAnnounced(comparison?.verdict ?? null, i18n);

  return (
    <div className={styles.page}>
      <Header
        crumbs={comparison === undefined ? undefined : <Crumbs comparison={comparison} part={partNameOf(comparison.verdict, part, t)} />}
        facts={comparison === undefined ? undefined : <Facts comparison={comparison} />}
      />
      {/* A lost server is asked again and again, so that the question never ends in an error: the first answer that fails counts. */}
      {(isRefetchError || (failureCount > 0 && comparison !== undefined)) && stage !== "missing" ? (
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
      if (comparison.verdict === null) return null;
      return comparison.verdict.schema === "probe-web/run-verdict/1" ? (
        <Parts comparison={comparison} verdict={comparison.verdict} slug={slug} part={part} />
      ) : (
        <Workbench comparison={comparison} verdict={comparison.verdict} slug={slug} part={part} readOnly={comparison.read_only} />
      );
    case "failed":
    case "cancelled":
    case "interrupted":
      return (
        <WithParts slug={slug} comparison={comparison} part={part} ended={<Ended slug={slug} comparison={comparison} stage={stage} />} />
      );
    default:
      return <WithParts slug={slug} comparison={comparison} part={part} />;
  }
}

/** No verdict yet: how far it is, or why it ended. Of several parts those that are done can be opened. */
function WithParts({ slug, comparison, part, ended }: Pick<BodyProps, "slug" | "part"> & { comparison: Comparison; ended?: ReactNode }) {
  const left = useLastPart(part);
  if (comparison.parts.length < 2) return ended ?? <Running slug={slug} comparison={comparison} />;
  if (part !== null) {
    return <PartView comparison={comparison} verdict={{ parts: partsSoFar(comparison.parts), first: null }} slug={slug} part={part} />;
  }
  return <PartsSoFar comparison={comparison} slug={slug} from={left} ended={ended} />;
}

/** The part that was open before: whoever comes back to the overview stands on it. */
function useLastPart(part: number | null): number | null {
  const left = useRef<number | null>(null);
  useEffect(() => {
    if (part !== null) left.current = part;
  }, [part]);
  return left.current;
}

/** All parts, or the one that the address names. */
function Parts({ part, ...of }: { comparison: Comparison; verdict: RunVerdict; slug: string; part: number | null }) {
  const left = useLastPart(part);
  return part === null ? <PartsPage {...of} from={left} /> : <PartView {...of} part={part} />;
}

const MARKS = { diverged: "▲ ", consistent: "✓ ", identical: "✓ ", not_comparable: "∅ ", left_only: "", right_only: "" } as const;

/** With the verdict's sign in front: a row of tabs can be told apart. Of a part where one is open. */
function titleOf(comparison: Comparison, part: number | null, { t, language }: I18n): string {
  const { verdict } = comparison;
  const open = partOf(verdict, part);
  const word = open === null ? verdict?.verdict : open.verdict;
  const mark = word == null ? "" : MARKS[word];
  const name = comparisonName(comparison, language);
  return mark + (open === null ? name : `${partName(open, t)} · ${name}`);
}

function partOf(verdict: Verdict | null, part: number | null) {
  if (part === null || verdict?.schema !== "probe-web/run-verdict/1") return null;
  return verdict.parts.find(({ n }) => n === part) ?? null;
}

function partNameOf(verdict: Verdict | null, part: number | null, t: Messages): string | null {
  const open = partOf(verdict, part);
  return open === null ? null : partName(open, t);
}

/** Read out when it arrives while the page is open, and when the page opens on it. */
function useVerdictAnnounced(verdict: Verdict | null, { language }: I18n): void {
  const sentence = verdict?.headline[language] ?? "";
  useEffect(() => {
    if (sentence !== "") announce(sentence);
  }, [sentence]);
}
