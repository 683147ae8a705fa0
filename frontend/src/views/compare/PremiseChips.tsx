import { Check, Minus, X } from "lucide-react";
import { useI18n } from "../../i18n";
import styles from "./verdict.module.css";

interface Chip {
  readonly code: string;
  readonly text: string;
  readonly state: "ok" | "failed" | "unknown";
  /** What the state is called: the sign says it to eyes alone. */
  readonly word: string;
  readonly title?: string;
}

interface Props {
  label: string;
  chips: readonly Chip[];
  /** Said of those that hold where there is no room for each. */
  summary: string;
}

/** What an answer rests on, a chip each. Only what fails is coloured; those that hold are one chip where the page is narrow. */
export function PremiseChips({ label, chips, summary }: Props) {
  const { t } = useI18n();
  return (
    <ul className={styles.premises} aria-label={label}>
      <li className={styles.premisesLabel} aria-hidden="true">
        {label}
      </li>
      {chips.map(({ code, text, state, word, title }) => (
        <li key={code} className={`${styles.chip} ${styles[state]}`} title={title} data-premise={code}>
          <Sign state={state} />
          {text}
          <span className="visually-hidden">
            {t.common.comma}
            {word}
          </span>
        </li>
      ))}
      {chips.some(({ state }) => state === "ok") ? (
        <li className={`${styles.chip} ${styles.ok} ${styles.summary}`}>
          <Sign state="ok" />
          {summary}
        </li>
      ) : null}
    </ul>
  );
}

function Sign({ state }: { state: Chip["state"] }) {
  if (state === "failed") return <X size={12} strokeWidth={2.2} aria-hidden="true" />;
  return state === "ok" ? <Check size={12} aria-hidden="true" /> : <Minus size={12} aria-hidden="true" />;
}
