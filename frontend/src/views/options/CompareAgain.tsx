import { useMutation, useQueryClient } from "@tanstack/react-query";
import { type ReactNode, useState } from "react";
import { useLocation } from "wouter";
import { createComparison, isOver } from "../../api/queries";
import type { Comparison } from "../../api/types";
import { useI18n } from "../../i18n";
import { errorSentence } from "../../i18n/errors";
import { Button } from "../../ui/button";
import { useCommands } from "../../ui/commands";
import { Dialog } from "../../ui/dialog";
import { sideTitles } from "../../ui/side-words";
import { MappingField } from "../mapping/MappingField";
import { type Choices, choicesOf, optionsOf } from "./choices";
import { OptionsFields } from "./OptionsFields";
import styles from "./options.module.css";

interface Props {
  comparison: Comparison;
  slug: string;
}

/**
 * Begins another comparison of the same two runs with other options. Not there for who only looks, nor while this one is at work. The dialog
 * has a place of its own: the button may move to another place of the page, as on the way to a phone's width, and what was chosen stays.
 */
export function useCompareAgain(comparison: Comparison, slug: string): { button: ReactNode; dialog: ReactNode } {
  const { t } = useI18n();
  const [open, setOpen] = useState(false);
  const { left, right } = comparison;
  const can = !comparison.read_only && left.id !== null && right.id !== null && isOver(comparison);
  const title = t.options.again;
  useCommands(can ? [{ id: "compare-again", title, group: "page", run: () => setOpen(true) }] : []);
  if (!can || left.id === null || right.id === null) return { button: null, dialog: null };
  return {
    button: (
      <Button title={title} onClick={() => setOpen(true)}>
        {t.options.open}
      </Button>
    ),
    dialog: open ? (
      <Dialog label={title} onClose={() => setOpen(false)} className={styles.dialog}>
        <AgainForm comparison={comparison} slug={slug} runs={[left.id, right.id]} onClose={() => setOpen(false)} />
      </Dialog>
    ) : null,
  };
}

/** The button with its dialog, where the button has one place. */
export function CompareAgain({ comparison, slug }: Props) {
  const { button, dialog } = useCompareAgain(comparison, slug);
  return (
    <>
      {button}
      {dialog}
    </>
  );
}

function AgainForm({ comparison, slug, runs, onClose }: Props & { runs: readonly [string, string]; onClose: () => void }) {
  const { t, language } = useI18n();
  const words = t.options;
  const [, navigate] = useLocation();
  const queries = useQueryClient();
  const { left, right } = comparison;
  const inventories = { left: left.inventory, right: right.inventory };
  const [choices, setChoices] = useState<Choices>(() => choicesOf(comparison.options, inventories));
  const start = useMutation({
    mutationFn: () => createComparison(runs[0], runs[1], optionsOf(choices), slug),
    onSuccess: ({ url }) => {
      void queries.invalidateQueries({ queryKey: ["comparisons"] });
      onClose();
      navigate(url);
    },
  });
  return (
    <form
      className={styles.again}
      onSubmit={(event) => {
        event.preventDefault();
        if (!start.isPending) start.mutate();
      }}
    >
      <h2>{words.again}</h2>
      <p className={styles.note}>{words.againNote}</p>
      <OptionsFields choices={choices} onChange={setChoices} inventories={inventories} titles={sideTitles(left, right, t)} />
      <MappingField value={choices.mapping} onChange={(mapping) => setChoices({ ...choices, mapping })} />
      {start.error === null ? null : (
        <p className={styles.problem} role="alert">
          {t.landing.startFailed(errorSentence(start.error, language))}
        </p>
      )}
      <div className={styles.buttons}>
        <Button onClick={onClose}>{t.mapping.cancel}</Button>
        <Button type="submit" look="primary" aria-disabled={start.isPending}>
          {start.isPending ? t.landing.comparing : t.landing.compare}
        </Button>
      </div>
    </form>
  );
}
