import { Info, TriangleAlert } from "lucide-react";
import type { Finding } from "../../api/types";
import { useI18n } from "../../i18n";
import styles from "./findings-list.module.css";

/** What a comparison found besides its answer, a sentence each; nothing where there is nothing. */
export function FindingsList({ findings, label }: { findings: readonly Finding[]; label: string }) {
  const { language } = useI18n();
  if (findings.length === 0) return null;
  return (
    <ul className={styles.findings} aria-label={label}>
      {findings.map(({ code, severity, text }) => (
        // One code may be found on both sides.
        <li key={`${code} ${text.en}`} className={styles.finding} data-finding={code} data-severity={severity}>
          {severity === "info" ? <Info size={13} aria-hidden="true" /> : <TriangleAlert size={13} aria-hidden="true" />}
          <span>{text[language]}</span>
        </li>
      ))}
    </ul>
  );
}
