import { useId, useRef, useState } from "react";
import { useI18n } from "../../i18n";
import { Button } from "../../ui/button";
import styles from "./mapping-field.module.css";

const MOST_BYTES = 1_000_000; // as the server takes it

/** "Use this mapping": text, or a file that is chosen or dropped on it. Folded away until it is asked for. */
export function MappingField({ value, onChange }: { value: string; onChange: (text: string) => void }) {
  const { t, format } = useI18n();
  const words = t.mapping;
  const file = useRef<HTMLInputElement>(null);
  const field = useId();
  const [tooLarge, setTooLarge] = useState(false);
  const read = async (chosen: File | undefined) => {
    if (chosen === undefined) return;
    setTooLarge(chosen.size > MOST_BYTES);
    if (chosen.size <= MOST_BYTES) onChange(await chosen.text());
  };
  return (
    <details className={styles.options}>
      <summary>{value.trim() === "" ? words.open : words.used(format.count(value.trim().split("\n").length))}</summary>
      <div className={styles.body}>
        <label htmlFor={field} className={styles.hint}>
          {words.hint}
        </label>
        <textarea
          id={field}
          className={styles.text}
          aria-label={words.text}
          rows={5}
          spellCheck={false}
          placeholder={"pairs:\n- {left: model.layers.N.mlp, right: model.layers.N.feed_forward}"}
          value={value}
          onChange={(event) => onChange(event.target.value)}
          onDragOver={(event) => {
            event.preventDefault();
            event.dataTransfer.dropEffect = "copy";
          }}
          onDrop={(event) => {
            event.preventDefault();
            void read(event.dataTransfer.files[0]);
          }}
        />
        {tooLarge ? (
          <p className={styles.problem} role="alert">
            {words.tooLarge}
          </p>
        ) : null}
        <div className={styles.actions}>
          <input
            ref={file}
            type="file"
            className="visually-hidden"
            accept=".yaml,.yml,.csv,text/*"
            aria-label={words.choose}
            tabIndex={-1}
            onChange={(event) => {
              void read(event.target.files?.[0]);
              event.target.value = "";
            }}
          />
          <Button onClick={() => file.current?.click()}>{words.choose}</Button>
          {value === "" ? null : <Button onClick={() => onChange("")}>{words.clear}</Button>}
        </div>
      </div>
    </details>
  );
}
