import { Popover } from "radix-ui";
import { type ReactNode, useEffect, useRef, useState } from "react";
import type { Progress } from "../../api/types";
import { useI18n } from "../../i18n";
import { errorSentence } from "../../i18n/errors";
import { announce } from "../../ui/announce";
import { Button } from "../../ui/button";
import { type ExportFile, exportAddress, saveFile, waitForExport } from "./download";
import styles from "./export-menu.module.css";

interface Props {
  slug: string;
  /** A run verdict with key data has a workbook of them. */
  keyData: boolean;
  /** The verdict may be known before there is anything to export. */
  done: boolean;
  open: boolean;
  onOpenChange: (open: boolean) => void;
  /** The button that opens it. */
  children: ReactNode;
}

type State = { kind: "making"; progress: Progress } | { kind: "ready" } | { kind: "failed"; sentence: string };

/** Every file that a comparison can be taken away as, each with what became of asking for it. It stays open while a file is made. */
export function ExportMenu({ slug, keyData, done, open, onOpenChange, children }: Props) {
  const { t, language } = useI18n();
  const words = t.exports;
  const languages = language === "zh" ? (["zh", "en"] as const) : (["en", "zh"] as const); // the reader's own first
  const { states, start } = useExports(slug);
  const groups: readonly { title: string; files: readonly ExportFile[] }[] = [
    {
      title: words.report,
      files: [...languages.map((lang) => ({ name: "report.html", lang })), ...languages.map((lang) => ({ name: "report.md", lang }))],
    },
    { title: words.table, files: [{ name: "table.csv" }, { name: "table.xlsx" }, ...(keyData ? [{ name: "keydata.xlsx" }] : [])] },
    { title: words.mapping, files: [{ name: "mapping.yaml" }, { name: "mapping.csv" }] },
    { title: words.verdict, files: [{ name: "verdict.json" }] },
  ];
  return (
    <Popover.Root open={open} onOpenChange={onOpenChange}>
      <Popover.Trigger asChild>{children}</Popover.Trigger>
      <Popover.Portal>
        <Popover.Content className={styles.panel} align="end" sideOffset={6} collisionPadding={12} aria-label={words.title}>
          <h2>{words.title}</h2>
          {done ? null : <p className={styles.lead}>{words.notDone}</p>}
          {groups.map(({ title, files }) => (
            <section key={title} className={styles.group} aria-label={title}>
              <h3>{title}</h3>
              {files.map((file) => {
                const address = exportAddress(slug, file);
                const state = states.get(address);
                return (
                  <div key={address} className={styles.row}>
                    <Button
                      className={styles.file}
                      aria-disabled={state?.kind === "making" || (!done && file.name !== "verdict.json")}
                      onClick={() => start(file)}
                    >
                      {words.files[file.name] ?? file.name}
                      {file.lang === undefined ? null : <span className={styles.lang}>{words.languages[file.lang]}</span>}
                    </Button>
                    <ExportState state={state} />
                  </div>
                );
              })}
            </section>
          ))}
        </Popover.Content>
      </Popover.Portal>
    </Popover.Root>
  );
}

function ExportState({ state }: { state: State | undefined }) {
  const { t, format } = useI18n();
  if (state === undefined) return null;
  if (state.kind === "failed") {
    return (
      <span className={styles.failed} role="alert">
        {state.sentence}
      </span>
    );
  }
  const rows = state.kind === "making" && typeof state.progress["rows"] === "number" ? state.progress["rows"] : null;
  return (
    <span className={styles.state}>
      {state.kind === "ready" ? t.exports.ready : rows === null ? t.exports.making : t.exports.makingRows(format.count(rows))}
    </span>
  );
}

/** What was asked for, by address. Leaving the page gives up waiting; the server goes on making. */
function useExports(slug: string) {
  const { t, language } = useI18n();
  const [states, setStates] = useState<ReadonlyMap<string, State>>(new Map());
  const waiting = useRef(new Map<string, AbortController>());
  // biome-ignore lint/correctness/useExhaustiveDependencies: another comparison begins with nothing asked for
  useEffect(() => {
    const controllers = waiting.current;
    return () => {
      for (const controller of controllers.values()) controller.abort();
      controllers.clear();
      setStates(new Map());
    };
  }, [slug]);
  const start = async (file: ExportFile) => {
    const address = exportAddress(slug, file);
    if (waiting.current.has(address)) return;
    const controller = new AbortController();
    waiting.current.set(address, controller);
    const tell = (state: State) => {
      if (!controller.signal.aborted) setStates((known) => new Map(known).set(address, state));
    };
    tell({ kind: "making", progress: {} });
    try {
      await waitForExport(address, (progress) => tell({ kind: "making", progress }), controller.signal);
      saveFile(address);
      tell({ kind: "ready" });
      announce(t.exports.saved(file.name));
    } catch (error) {
      tell({ kind: "failed", sentence: t.exports.failed(errorSentence(error, language)) });
    } finally {
      waiting.current.delete(address);
    }
  };
  return { states, start: (file: ExportFile) => void start(file) };
}
