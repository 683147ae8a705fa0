import { Search, X } from "lucide-react";
import { type RefObject, useEffect, useId, useRef, useState } from "react";
import { useI18n } from "../../i18n";
import styles from "./toolbar.module.css";
import type { Filter } from "./workbench-state";

interface Props {
  input: RefObject<HTMLInputElement | null>;
  text: string;
  filter: Filter | null;
  hasNorm: boolean;
  rows: number;
  brush: readonly [number, number] | null;
  ignored: number;
  onText: (text: string) => void;
  onBrushClear: () => void;
  onIgnoredClear: () => void;
  onLeave: () => void;
}

/**
 * The query box. While it has the focus it is a text field; when it rests, its terms stand in it as chips that can be taken out one by one,
 * so a filter never moves what is below it.
 */
export function QueryBox(props: Props) {
  const { input, text, filter, hasNorm, rows, brush, ignored, onText, onBrushClear, onIgnoredClear, onLeave } = props;
  const { t, format } = useI18n();
  const words = t.compare.query;
  const [editing, setEditing] = useState(false);
  const [draft, setDraft] = useState(text);
  const errorId = useId();
  const timer = useRef(0);
  useEffect(() => setDraft(text), [text]);
  useEffect(() => () => window.clearTimeout(timer.current), []);

  const change = (next: string) => {
    setDraft(next);
    window.clearTimeout(timer.current);
    timer.current = window.setTimeout(() => onText(next), 60);
  };
  const clear = () => {
    window.clearTimeout(timer.current);
    setDraft("");
    onText("");
    input.current?.focus();
  };
  const terms = filter === null ? [] : [...filter.query.terms, ...filter.query.errors].sort((a, b) => a.start - b.start);
  const error = filter?.query.errors[0];
  const normless = !hasNorm && filter?.query.terms.some(({ condition }) => condition.type === "number" && condition.field === "norm");
  const message = error !== undefined ? words.errors[error.code](error.params) : normless ? words.errors.no_norm({}) : null;
  const chips = !editing && text !== "";
  const filtering = filter?.matches !== null && filter !== null;
  return (
    <div className={`${styles.box} ${message !== null ? styles.faulty : ""}`}>
      <Search size={13} className={styles.lens} aria-hidden="true" />
      {chips ? (
        <ul className={styles.terms}>
          {terms.map((term) => {
            const own = text.slice(term.start, term.end);
            return (
              <li key={`${term.start}-${own}`} className={`${styles.term} ${"code" in term ? styles.wrong : ""}`}>
                <button type="button" className={styles.termText} onClick={() => input.current?.focus()} tabIndex={-1}>
                  {own}
                </button>
                <button
                  type="button"
                  className={styles.remove}
                  aria-label={words.removeTerm(own)}
                  onClick={() => onText(`${text.slice(0, term.start)}${text.slice(term.end)}`.replace(/\s+/g, " ").trim())}
                >
                  <X size={11} aria-hidden="true" />
                </button>
              </li>
            );
          })}
        </ul>
      ) : null}
      <input
        ref={input}
        type="text"
        className={`${styles.input} ${chips ? styles.resting : ""}`}
        value={draft}
        spellCheck={false}
        autoComplete="off"
        autoCapitalize="off"
        aria-label={words.label}
        aria-invalid={error !== undefined}
        {...(message === null ? {} : { "aria-describedby": errorId })}
        placeholder={`${words.placeholder} ${words.example}`}
        onFocus={() => setEditing(true)}
        onBlur={() => setEditing(false)}
        onChange={(event) => change(event.target.value)}
        onKeyDown={(event) => {
          if (event.nativeEvent.isComposing) return;
          if (event.key === "Escape" || event.key === "Enter") {
            event.preventDefault();
            window.clearTimeout(timer.current);
            onText(draft);
            onLeave();
          }
        }}
      />
      {brush === null ? null : (
        <span className={styles.term}>
          <span className={styles.termText}>{words.brush(String(brush[0]), String(brush[1]))}</span>
          <button type="button" className={styles.remove} aria-label={words.removeBrush} onClick={onBrushClear}>
            <X size={11} aria-hidden="true" />
          </button>
        </span>
      )}
      {ignored === 0 ? null : (
        <span className={styles.term}>
          <span className={styles.termText}>{words.setAside(String(ignored))}</span>
          <button
            type="button"
            className={styles.remove}
            aria-label={words.undoSetAside}
            title={words.undoSetAside}
            onClick={onIgnoredClear}
          >
            <X size={11} aria-hidden="true" />
          </button>
        </span>
      )}
      {filtering ? <output className={styles.found}>{words.rows(format.count(filter?.count ?? 0), format.count(rows))}</output> : null}
      {text === "" ? (
        <kbd className={styles.key}>/</kbd>
      ) : (
        <button type="button" className={styles.clear} aria-label={words.clear} title={words.clear} onClick={clear}>
          <X size={13} aria-hidden="true" />
        </button>
      )}
      {message !== null ? (
        <p id={errorId} className={styles.message} role="status">
          {message}
        </p>
      ) : null}
    </div>
  );
}
