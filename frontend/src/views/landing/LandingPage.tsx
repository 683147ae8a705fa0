import { useMutation, useQueryClient } from "@tanstack/react-query";
import { MoveHorizontal } from "lucide-react";
import { useEffect, useRef, useState } from "react";
import { useLocation } from "wouter";
import { createComparison, useAbout } from "../../api/queries";
import { useI18n } from "../../i18n";
import { errorSentence } from "../../i18n/errors";
import { Button } from "../../ui/button";
import { useCommands } from "../../ui/commands";
import { CopyButton } from "../../ui/copy-button";
import { Header } from "../../ui/header";
import { sideTitles } from "../../ui/side-words";
import { useTitle } from "../../ui/use-title";
import { MappingField } from "../mapping/MappingField";
import { type Choices, NO_CHOICES, optionsOf } from "../options/choices";
import { OptionsField } from "../options/OptionsField";
import styles from "./landing.module.css";
import { Recent } from "./Recent";
import { SenderGate } from "./SenderGate";
import { SidePanel } from "./SidePanel";
import { comparable, type SideHolding, useSide } from "./use-side";

export function LandingPage() {
  const { t } = useI18n();
  const left = useSide("left");
  const right = useSide("right");
  const maySend = useAbout().data?.may_send ?? true;
  useTitle(t.landing.documentTitle);
  useNoStrayDrops();
  return (
    <div className={styles.page}>
      <Header />
      <main id="main" tabIndex={-1} className={styles.main}>
        <div className={styles.column}>
          <h1 className={styles.title}>{t.landing.title}</h1>
          <p className={styles.lead}>{t.landing.lead}</p>
          <SenderGate />
          <div className={styles.sides}>
            <SidePanel side="left" holding={left} other={right} closed={!maySend} />
            <MoveHorizontal className={styles.arrow} size={28} strokeWidth={1.2} aria-hidden="true" />
            <SidePanel side="right" holding={right} other={left} closed={!maySend} />
          </div>
          <Actions left={left} right={right} />
          <Recent />
        </div>
      </main>
    </div>
  );
}

function Actions({ left, right }: { left: SideHolding; right: SideHolding }) {
  const { t, language } = useI18n();
  const about = useAbout();
  const [, navigate] = useLocation();
  const queries = useQueryClient();
  const [choices, setChoices] = useState<Choices>(NO_CHOICES);
  const start = useMutation({
    mutationFn: ([leftRun, rightRun]: readonly [string, string]) => createComparison(leftRun, rightRun, optionsOf(choices)),
    onSuccess: ({ url }) => {
      void queries.invalidateQueries({ queryKey: ["comparisons"] });
      navigate(url);
    },
  });
  const started = useRef(false); // the second of two clicks comes before the page has drawn what the first began
  const runs = [comparable(left), comparable(right)] as const;
  const ready = runs[0] !== null && runs[1] !== null;
  const compare = () => {
    if (runs[0] === null || runs[1] === null || started.current) return;
    started.current = true;
    start.mutate([runs[0], runs[1]], {
      onError: () => {
        started.current = false;
      },
    });
  };
  const example = about.data?.example ?? null;
  useCommands([
    ...(example === null
      ? []
      : [{ id: "example", title: t.landing.example, group: "page" as const, keys: ["e"], run: () => navigate(`/c/${example}`) }]),
    ...(ready ? [{ id: "compare", title: t.landing.compare, group: "page" as const, keys: ["Ctrl+Enter"], run: compare }] : []),
  ]);
  return (
    <>
      <OptionsField
        choices={choices}
        onChange={setChoices}
        inventories={{ left: left.run?.inventory ?? null, right: right.run?.inventory ?? null }}
        titles={sideTitles(left.run, right.run, t)}
      />
      <MappingField value={choices.mapping} onChange={(mapping) => setChoices({ ...choices, mapping })} />
      <div className={styles.actions}>
        <div className={styles.shell}>
          <span className={styles.shellLabel}>{t.landing.fromShell}</span>
          <code className={styles.command}>{t.landing.shellCommand}</code>
          <CopyButton text={t.landing.shellCommand} />
        </div>
        <div className={styles.buttons}>
          {example === null ? null : <Button onClick={() => navigate(`/c/${example}`)}>{t.landing.example}</Button>}
          <Button look="primary" aria-disabled={!ready || start.isPending} onClick={compare}>
            {start.isPending ? t.landing.comparing : compareLabel(left, right, t.landing)}
          </Button>
        </div>
      </div>
      {start.error === null ? null : (
        <p className={styles.problem} role="alert">
          {t.landing.startFailed(errorSentence(start.error, language))}
        </p>
      )}
    </>
  );
}

type LandingWords = ReturnType<typeof useI18n>["t"]["landing"];

/** The button says what it waits for, so that nobody has to guess why it rests. */
function compareLabel(left: SideHolding, right: SideHolding, words: LandingWords): string {
  if (comparable(left) !== null && comparable(right) !== null) return words.compare;
  const isEmpty = ({ view }: SideHolding) => view.phase === "empty" || view.phase === "lost";
  const isBroken = ({ view, run, runError }: SideHolding) => view.phase === "refused" || run?.state === "failed" || runError !== null;
  if (isBroken(left) || isBroken(right)) return words.compareWaitingReplace;
  if (isEmpty(left) && isEmpty(right)) return words.compareWaitingBoth;
  if (isEmpty(left)) return words.compareWaitingTrain;
  if (isEmpty(right)) return words.compareWaitingInfer;
  return words.compareWaitingUpload;
}

/** A file that misses its zone would make the browser leave the page and open it. */
function useNoStrayDrops(): void {
  useEffect(() => {
    const refuse = (event: DragEvent) => {
      if (event.defaultPrevented) return;
      event.preventDefault();
      if (event.dataTransfer !== null) event.dataTransfer.dropEffect = "none";
    };
    window.addEventListener("dragover", refuse);
    window.addEventListener("drop", refuse);
    return () => {
      window.removeEventListener("dragover", refuse);
      window.removeEventListener("drop", refuse);
    };
  }, []);
}
