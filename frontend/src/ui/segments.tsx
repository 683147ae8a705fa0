import styles from "./segments.module.css";

interface Props<Value extends string> {
  label: string;
  value: Value;
  options: readonly { readonly value: Value; readonly text: string }[];
  onChange: (value: Value) => void;
  className?: string | undefined;
}

/** One of a few, as one joined control; each button says whether it is the one. */
export function Segments<Value extends string>({ label, value, options, onChange, className }: Props<Value>) {
  return (
    // biome-ignore lint/a11y/useSemanticElements: a fieldset cannot be laid out as one joined control in every browser
    <div className={[styles.segments, className].filter(Boolean).join(" ")} role="group" aria-label={label}>
      {options.map((option) => (
        <button key={option.value} type="button" aria-pressed={option.value === value} onClick={() => onChange(option.value)}>
          {option.text}
        </button>
      ))}
    </div>
  );
}
