import { useQueryClient } from "@tanstack/react-query";
import { useEffect, useMemo, useState } from "react";
import { useLocation } from "wouter";
import { createComparison } from "../../api/queries";
import type { Comparison } from "../../api/types";
import { useI18n } from "../../i18n";
import { errorSentence } from "../../i18n/errors";
import { canRule, endsOf, isPair, matchChange, unmatchChange } from "../../model/remap";
import { NO_ROW, type Row } from "../../model/rows";
import { moduleOf, type Tree } from "../../model/tree";
import { announce } from "../../ui/announce";
import { Button } from "../../ui/button";
import { nodeQuery } from "../compare/queries";
import styles from "./match-panel.module.css";
import { type HandRule, namesOf, withRule } from "./rules";

/** What the reader is about to say about a row. */
export interface Matching {
  readonly kind: "match" | "unmatch";
  readonly row: Row;
}

interface Props {
  comparison: Comparison;
  slug: string;
  part: number | null;
  tree: Tree;
  matching: Matching;
  /** The row chosen in the tree: the partner, once it is another one. */
  selected: Row;
  onClose: () => void;
}

/** A strip over the tree: what is about to be matched or unmatched, what that changes here, and the button that compares again. */
export function MatchPanel({ comparison, slug, part, tree, matching, selected, onClose }: Props) {
  const { t, format } = useI18n();
  const words = t.mapping;
  const [descendants, setDescendants] = useState(false);
  const { row, kind } = matching;
  const partner = kind === "match" && selected !== row && selected !== NO_ROW ? selected : NO_ROW;
  const ends = partner === NO_ROW ? null : endsOf(tree, row, partner);
  const allowed = canRule(tree, row) && (partner === NO_ROW || canRule(tree, partner));
  const change = useMemo(
    () =>
      kind === "unmatch"
        ? unmatchChange(tree, row, descendants)
        : ends === null
          ? null
          : matchChange(tree, ends.left, ends.right, descendants),
    [tree, kind, row, ends, descendants],
  );
  const apply = useApply(comparison, slug, part, kind === "match", descendants);
  const line =
    kind === "unmatch"
      ? words.unmatchLine(moduleOf(tree, row))
      : ends === null
        ? words.choosePartner(moduleOf(tree, row))
        : words.pair(moduleOf(tree, ends.left), moduleOf(tree, ends.right));
  useEffect(() => announce(line), [line]);
  const problem = !allowed ? words.noRow : partner !== NO_ROW && ends === null ? words.notBoth : null;
  const preview =
    change === null
      ? null
      : kind === "unmatch"
        ? words.previewApart(change.apart, format.count(change.apart))
        : change.made === 0 && change.apart === 0
          ? words.previewNothing
          : words.preview(change.made, format.count(change.made), change.apart, format.count(change.apart));
  const ready = problem === null && change !== null && change.made + change.apart > 0 && !apply.pending;
  const rows = kind === "unmatch" ? { left: row, right: row } : ends;
  return (
    <section
      className={styles.panel}
      aria-label={words.match}
      onKeyDown={(event) => {
        if (event.key !== "Escape") return;
        event.stopPropagation();
        onClose();
      }}
    >
      <p className={styles.line}>{line}</p>
      {problem === null ? null : (
        <p className={styles.problem} role="alert">
          {problem}
        </p>
      )}
      {preview === null ? null : (
        <p className={styles.preview} data-testid="match-preview">
          {preview}
        </p>
      )}
      <div className={styles.actions}>
        <label className={styles.check}>
          <input type="checkbox" checked={descendants} onChange={(event) => setDescendants(event.target.checked)} />
          {words.descendants}
        </label>
        <Button onClick={onClose}>{words.cancel}</Button>
        <Button aria-disabled={!ready} title={words.applyHint} onClick={() => rows !== null && apply.start(rows.left, rows.right)}>
          {apply.pending ? words.applying : words.apply}
        </Button>
      </div>
      {apply.error === null ? null : (
        <p className={styles.problem} role="alert">
          {words.failed(apply.error)}
        </p>
      )}
    </section>
  );
}

/** A new comparison of the same two runs, with the rules of this one and one more. */
function useApply(comparison: Comparison, slug: string, part: number | null, pair: boolean, descendants: boolean) {
  const { language } = useI18n();
  const queries = useQueryClient();
  const [, navigate] = useLocation();
  const [pending, setPending] = useState(false);
  const [error, setError] = useState<string | null>(null);
  const start = async (left: Row, right: Row) => {
    if (comparison.left.id === null || comparison.right.id === null) return;
    setPending(true);
    setError(null);
    try {
      const nodes = await Promise.all([left, right].map((row) => queries.fetchQuery(nodeQuery(slug, part, row))));
      const rule: HandRule = {
        pair,
        left: nodes[0] === undefined ? [] : namesOf(nodes[0], "left"),
        right: nodes[1] === undefined ? [] : namesOf(nodes[1], "right"),
        descendants,
      };
      const before = comparison.options["mapping"];
      const options = { ...comparison.options, mapping: withRule(typeof before === "string" ? before : undefined, rule) };
      const { url } = await createComparison(comparison.left.id, comparison.right.id, options, slug);
      navigate(url);
    } catch (problem) {
      setError(errorSentence(problem, language));
      setPending(false);
    }
  };
  return { pending, error, start: (left: Row, right: Row) => void start(left, right) };
}

/** Whether a reader may match by hand at all, and whether this row has a partner to lose. */
export function matchChoices(comparison: Comparison, tree: Tree | null, row: Row): { match: boolean; unmatch: boolean } {
  const own = comparison.state === "done" && !comparison.read_only && comparison.left.id !== null && comparison.right.id !== null;
  if (!own || tree === null || !canRule(tree, row)) return { match: false, unmatch: false };
  return { match: true, unmatch: isPair(tree, row) };
}
