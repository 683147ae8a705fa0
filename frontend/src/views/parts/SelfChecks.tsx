import { Check, X } from "lucide-react";
import { useState } from "react";
import type { SelfCheck } from "../../api/run-verdict";
import { useI18n } from "../../i18n";
import { number } from "../../i18n/format";
import { Button } from "../../ui/button";
import { SideMark } from "../../ui/side";
import { placeText } from "./run-words";
import styles from "./tables.module.css";

/** What each run says of itself alone: those that fail, the others on request. */
export function SelfChecks({ checks, names }: { checks: readonly SelfCheck[]; names: Record<"left" | "right", string> }) {
  const { t, language, format } = useI18n();
  const words = t.loop.checks;
  const [all, setAll] = useState(false);
  if (checks.length === 0) return null;
  const failing = checks.filter(({ state }) => state === "failed");
  const holding = checks.length - failing.length;
  const shown = all ? [...failing, ...checks.filter(({ state }) => state === "ok")] : failing;
  return (
    <section className={styles.section} aria-label={words.title}>
      <header className={styles.header}>
        <h2>{words.title}</h2>
        <span className={styles.note}>{words.note}</span>
        {holding === 0 ? null : (
          <span className={styles.aside}>
            <Check className={styles.good} size={12} aria-hidden="true" /> {words.holding(holding, format.count(holding))}{" "}
            <Button look="link" onClick={() => setAll(!all)}>
              {all ? t.loop.preconditions.hide : t.loop.preconditions.show}
            </Button>
          </span>
        )}
      </header>
      {shown.length === 0 ? null : (
        <ul className={styles.checks}>
          {shown.map((check) => {
            const facts = [
              check.state === "failed" ? words.failed(format.count(check.failed), format.count(check.tables)) : "",
              check.first === null || check.state === "ok" ? "" : placeText(check.first, t),
              check.worst === null ? "" : words.worst(number(check.worst)),
            ].filter(Boolean);
            return (
              <li key={`${check.side} ${check.code} ${check.key}`}>
                <span className={check.state === "failed" ? styles.bad : styles.good}>
                  {check.state === "failed" ? (
                    <X size={12} strokeWidth={2.2} aria-hidden="true" />
                  ) : (
                    <Check size={12} strokeWidth={2} aria-hidden="true" />
                  )}
                  <span className="visually-hidden">{words.state[check.state]}</span>
                </span>
                <span>
                  {check.text[language]}
                  <span className={styles.why}>
                    <SideMark side={check.side} /> {[names[check.side], ...facts].join(" · ")}
                  </span>
                </span>
              </li>
            );
          })}
        </ul>
      )}
    </section>
  );
}
