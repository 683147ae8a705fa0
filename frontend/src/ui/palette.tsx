import { Search } from "lucide-react";
import { type KeyboardEvent, useEffect, useId, useRef, useState } from "react";
import { useI18n } from "../i18n";
import { type Command, keysText, useRegisteredCommands } from "./commands";
import { Dialog } from "./dialog";
import styles from "./palette.module.css";

/** Commands whose title holds every word of the query, in the order they were registered; those that begin with it come first. */
export function find(commands: readonly Command[], query: string): readonly Command[] {
  const words = query.toLowerCase().split(/\s+/).filter(Boolean);
  const shown = commands.filter((command) => command.keysOnly !== true);
  const hits = shown.filter((command) => words.every((word) => command.title.toLowerCase().includes(word)));
  const [first] = words;
  if (first === undefined) return hits;
  return hits.toSorted((a, b) => Number(b.title.toLowerCase().startsWith(first)) - Number(a.title.toLowerCase().startsWith(first)));
}

export function Palette({ onClose }: { onClose: () => void }) {
  const { t } = useI18n();
  const commands = useRegisteredCommands();
  const [query, setQuery] = useState("");
  const [at, setAt] = useState(0);
  const list = useId();
  const field = useRef<HTMLInputElement>(null);
  const hits = find(commands, query);
  const chosen = Math.min(at, Math.max(0, hits.length - 1));
  const current = hits[chosen];

  useEffect(() => field.current?.focus(), []);
  useEffect(() => {
    if (current !== undefined) document.getElementById(`${list}-${current.id}`)?.scrollIntoView({ block: "nearest" });
  }, [current, list]);

  const run = (command: Command | undefined) => {
    if (command === undefined) return;
    onClose();
    // After the dialog gave the focus back: a command may move it on.
    window.setTimeout(command.run, 0);
  };

  const onKeyDown = (event: KeyboardEvent) => {
    const step = { ArrowDown: 1, ArrowUp: -1 }[event.key];
    if (step !== undefined && hits.length > 0) {
      event.preventDefault();
      setAt((chosen + step + hits.length) % hits.length);
    } else if (event.key === "Enter" && !event.nativeEvent.isComposing) {
      event.preventDefault();
      run(current);
    }
  };

  return (
    <Dialog label={t.palette.title} onClose={onClose}>
      <div className={styles.search}>
        <Search size={15} aria-hidden="true" />
        <input
          ref={field}
          className={styles.field}
          role="combobox"
          aria-expanded="true"
          aria-controls={list}
          aria-activedescendant={current === undefined ? undefined : `${list}-${current.id}`}
          aria-label={t.palette.placeholder}
          placeholder={t.palette.placeholder}
          value={query}
          onChange={(event) => {
            setQuery(event.target.value);
            setAt(0);
          }}
          onKeyDown={onKeyDown}
        />
        <kbd className={styles.escape}>Esc</kbd>
      </div>
      <div id={list} role="listbox" aria-label={t.palette.title} className={styles.list} tabIndex={-1}>
        {hits.map((command) => (
          // biome-ignore lint/a11y/useKeyWithClickEvents: the field above holds the focus and takes the keys, as a combobox does
          <div
            key={command.id}
            id={`${list}-${command.id}`}
            role="option"
            tabIndex={-1}
            aria-selected={command === current}
            className={styles.option}
            onClick={() => run(command)}
            onPointerMove={() => setAt(hits.indexOf(command))}
          >
            <span className={styles.title}>{command.title}</span>
            <span className={styles.group}>{t.palette.groups[command.group]}</span>
            <span className={styles.keys}>{command.keys?.[0] === undefined ? null : <kbd>{keysText(command.keys[0])}</kbd>}</span>
          </div>
        ))}
      </div>
      {hits.length === 0 ? (
        <p className={styles.nothing} role="status">
          {t.palette.nothing(query)}
        </p>
      ) : null}
    </Dialog>
  );
}
