import { ChevronLeft, ChevronRight } from "lucide-react";
import { useEffect, useMemo } from "react";
import { asRequestError } from "../../api/problem";
import { usePartVerdict } from "../../api/queries";
import type { Comparison, RunPart, RunVerdict } from "../../api/types";
import { useI18n } from "../../i18n";
import { errorSentence } from "../../i18n/errors";
import { canOpen, cellState, firstCompared, isOneSided, isWritten, neighbourPart } from "../../model/parts";
import { announce } from "../../ui/announce";
import { Button } from "../../ui/button";
import { type Command, useCommands } from "../../ui/commands";
import { IconButton } from "../../ui/icon-button";
import { Notice } from "../../ui/notice";
import { Workbench } from "../compare/Workbench";
import { openPart } from "./open";
import { PartSign } from "./PartSign";
import styles from "./part-view.module.css";
import { RetryPart } from "./RetryPart";
import { RetryParts } from "./RetryParts";
import { partName, partReason, sideNames, stateWord } from "./words";

interface Props {
  comparison: Comparison;
  /** Of a comparison that has no verdict yet: its parts, and none of them the first. */
  verdict: Pick<RunVerdict, "parts" | "first">;
  slug: string;
  part: number;
}

/** One part of a run verdict: the workbench, below a bar that says which part it is and leads to the others. */
export function PartView({ comparison, verdict, slug, part: n }: Props) {
  const { t, language } = useI18n();
  const part = verdict.parts.find((known) => known.n === n);
  const back = <Button onClick={() => openPart(null)}>{t.parts.back}</Button>;
  if (part === undefined) {
    return (
      <Notice glyph="not_comparable" title={t.parts.missingTitle} role="alert" actions={back}>
        <p>{t.parts.missingText}</p>
      </Notice>
    );
  }
  return (
    <div className={styles.view}>
      <PartBar verdict={verdict} part={part} />
      <div className={styles.body}>
        {isOneSided(part) ? (
          <Notice glyph="not_comparable" title={t.parts.onlyTitle} actions={back}>
            <p>{partReason(part, sideNames(comparison, t), t, language).what}</p>
          </Notice>
        ) : !canOpen(part) ? (
          <Notice
            glyph={part.state === "failed" ? "failed" : "running"}
            title={t.parts.notDoneTitle[part.state ?? "queued"]}
            actions={
              <>
                <RetryPart slug={slug} comparison={comparison} part={part} look="primary" />
                {comparison.parts.filter(({ state }) => state === "failed").length > 1 ? (
                  <RetryParts slug={slug} comparison={comparison} />
                ) : null}
                {back}
              </>
            }
          >
            <p>{partReason(part, sideNames(comparison, t), t, language).what}</p>
          </Notice>
        ) : (
          <PartBody key={n} comparison={comparison} slug={slug} part={n} />
        )}
      </div>
    </div>
  );
}

function PartBody({ comparison, slug, part }: Omit<Props, "verdict">) {
  const { t, language } = useI18n();
  const done = isWritten(comparison, part);
  const { data, error, refetch } = usePartVerdict(slug, part, done);
  const sentence = data?.headline[language] ?? "";
  useEffect(() => {
    if (sentence !== "") announce(sentence);
  }, [sentence]);
  if (data !== undefined)
    return <Workbench comparison={comparison} verdict={data} slug={slug} part={part} readOnly={comparison.read_only} />;
  if (error !== null) {
    const actions = asRequestError(error).status === 404 ? null : <Button onClick={() => void refetch()}>{t.common.retry}</Button>;
    return (
      <Notice glyph="failed" title={t.parts.failedTitle} role="alert" actions={actions}>
        <p>{errorSentence(error, language)}</p>
      </Notice>
    );
  }
  return (
    <p className={styles.pending} role="status">
      {done ? t.parts.loading : t.parts.pending}
    </p>
  );
}

/** ‹ All parts · step 2 · reference … ‹ part 6 of 12 › */
function PartBar({ verdict, part }: { verdict: Props["verdict"]; part: RunPart }) {
  const { t, format } = useI18n();
  const words = t.parts;
  const { parts } = verdict;
  const previous = neighbourPart(parts, part.n, -1)?.n ?? null;
  const next = neighbourPart(parts, part.n, 1)?.n ?? null;
  const first = firstCompared(verdict)?.n === part.n;
  const state = cellState({ part, rank: null });
  useCommands(
    useMemo<readonly Command[]>(() => {
      const commands: Command[] = [{ id: "all-parts", title: words.back, group: "move", keys: ["a"], run: () => openPart(null) }];
      if (previous !== null)
        commands.push({ id: "previous-part", title: words.previous, group: "move", keys: ["{"], run: () => openPart(previous) });
      if (next !== null) commands.push({ id: "next-part", title: words.next, group: "move", keys: ["}"], run: () => openPart(next) });
      return commands;
    }, [words, previous, next]),
  );
  return (
    <nav className={styles.bar} aria-label={words.bar}>
      <Button look="quiet" className={styles.back} onClick={() => openPart(null)}>
        <ChevronLeft size={16} aria-hidden="true" />
        {words.back}
      </Button>
      <span className={styles.name}>
        <PartSign state={state} first={first} />
        <b title={partName(part, t)}>{partName(part, t)}</b>
        <span className={styles.verdict} data-verdict={state}>
          {stateWord(state, first ? t.parts.first : null, t)}
        </span>
      </span>
      <span className={styles.steps}>
        <span className={styles.position}>{words.position(format.count(parts.indexOf(part) + 1), format.count(parts.length))}</span>
        <IconButton label={words.previous} aria-disabled={previous === null} onClick={() => previous !== null && openPart(previous)}>
          <ChevronLeft size={16} aria-hidden="true" />
        </IconButton>
        <IconButton label={words.next} aria-disabled={next === null} onClick={() => next !== null && openPart(next)}>
          <ChevronRight size={16} aria-hidden="true" />
        </IconButton>
      </span>
    </nav>
  );
}
