import { X } from "lucide-react";
import { useState } from "react";
import type { ConfigurationDifference } from "../../api/run-verdict";
import { useI18n } from "../../i18n";
import { Button } from "../../ui/button";
import { SideMark } from "../../ui/side";
import { valueText } from "./run-words";
import styles from "./tables.module.css";

/** So many are shown at first, and all that matter. */
const SOME = 10;

/** The settings that the two runs hold differently, what matters first. */
export function Settings({ settings, names }: { settings: readonly ConfigurationDifference[]; names: Record<"left" | "right", string> }) {
  const { t, language, format } = useI18n();
  const words = t.loop.settings;
  const [all, setAll] = useState(false);
  if (settings.length === 0) return null;
  const some = Math.max(SOME, settings.filter(({ matters }) => matters).length);
  const shown = all ? settings : settings.slice(0, some);
  return (
    <section id="settings" tabIndex={-1} className={styles.section} aria-label={words.title}>
      <table className={styles.table}>
        <thead>
          <tr>
            <th scope="col">
              <h2>{words.title}</h2>
            </th>
            {(["left", "right"] as const).map((side) => (
              <th key={side} scope="col" className={styles.side} title={names[side]}>
                <SideMark side={side} /> {names[side]}
              </th>
            ))}
            <th scope="col">{words.matters}</th>
          </tr>
        </thead>
        <tbody>
          {shown.map(({ path, left, right, matters, state, why }) => (
            <tr key={path}>
              <th scope="row" className={styles.path}>
                {path}
              </th>
              <td className={styles.value}>{state === "right_only" ? <i>{words.missing}</i> : valueText(left)}</td>
              <td className={styles.value}>{state === "left_only" ? <i>{words.missing}</i> : valueText(right)}</td>
              <td className={matters ? styles.bad : styles.quiet}>
                {matters ? <X size={12} strokeWidth={2.2} aria-hidden="true" /> : null} <b>{matters ? words.yes : words.no}</b>
                {why === null || why === undefined ? null : <span className={styles.why}>{why[language]}</span>}
              </td>
            </tr>
          ))}
        </tbody>
      </table>
      {settings.length > some ? (
        <p className={styles.more}>
          <Button look="link" onClick={() => setAll(!all)}>
            {all ? words.showFewer : words.showAll(format.count(settings.length))}
          </Button>
        </p>
      ) : null}
    </section>
  );
}
