import type { RunVerdict } from "../../api/run-verdict";
import { useI18n } from "../../i18n";
import styles from "./run-findings.module.css";
import { PROMPTS_ONLY } from "./run-words";

/** What is to be said of the runs besides their chain. `notes`: also what is no fault, such as how sequences or ranks were paired. */
export function RunFindings({ verdict, notes = false }: { verdict: RunVerdict; notes?: boolean }) {
  const { t, language } = useI18n();
  const findings = (verdict.findings ?? []).filter(({ code, severity }) => (notes || severity !== "info") && code !== PROMPTS_ONLY);
  if (findings.length === 0) return null;
  return (
    <ul className={styles.findings} aria-label={t.loop.chain.findings}>
      {findings.map(({ code, severity, text }) => (
        <li key={`${code} ${text.en}`} data-severity={severity}>
          {text[language]}
        </li>
      ))}
    </ul>
  );
}

/** The same where nothing differs and there is no chain: what that rests on. */
export function WhatItRestsOn({ verdict }: { verdict: RunVerdict }) {
  const { t } = useI18n();
  if (verdict.first !== null || !(verdict.findings ?? []).some(({ code }) => code !== PROMPTS_ONLY)) return null;
  return (
    <section className={styles.section} aria-label={t.loop.chain.restsOn}>
      <h2>{t.loop.chain.restsOn}</h2>
      <RunFindings verdict={verdict} notes />
    </section>
  );
}
