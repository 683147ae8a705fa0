import type { PartVerdict } from "../../api/types";
import { useI18n } from "../../i18n";
import styles from "./detail.module.css";
import { RoleGlyph, type RoleName } from "./RoleGlyph";

/** What a verdict without an origin looked at besides: pairs, combinations, what was left out and why. Warnings stand with the verdict. */
export function Checked({ verdict }: { verdict: PartVerdict }) {
  const { t, language, format } = useI18n();
  const { counts, coverage } = verdict;
  const notes = verdict.findings.filter(({ severity }) => severity === "info");
  const words = t.compare.checked;
  const unmatched = counts.unmatched_left + counts.unmatched_right;
  const explained = coverage.left.explained - coverage.left.matched + coverage.right.explained - coverage.right.matched;
  const lines: [RoleName, string, string][] = [
    ["healed", words.pairs(format.count(counts.pairs)), words.beyond(format.count(counts.diverged))],
    ["healed", words.grades, `${format.count(counts.equal)} · ${format.count(counts.rounding)} · ${format.count(counts.noise)}`],
  ];
  if (counts.incomparable > 0) lines.push(["notcomparable", words.incomparable, format.count(counts.incomparable)]);
  if (unmatched > 0) lines.push(["unmatched", words.unmatched, words.explained(format.count(unmatched), format.count(explained))]);
  return (
    <section className={styles.section}>
      <h3>{t.compare.detail.checked}</h3>
      <ul>
        {lines.map(([glyph, text, figure]) => (
          <li key={text} className={styles.check}>
            <RoleGlyph name={glyph} size={13} />
            <span>{text}</span>
            <span className={styles.score}>{figure}</span>
          </li>
        ))}
        {notes.map(({ code, text }) => (
          <li key={`${code} ${text.en}`} className={styles.check}>
            <RoleGlyph name="healed" size={13} />
            <span>{text[language]}</span>
          </li>
        ))}
      </ul>
    </section>
  );
}
