import type { PartVerdict } from "../../api/types";
import { useI18n } from "../../i18n";
import { openKeys } from "../../ui/shell";
import styles from "./legend.module.css";
import { RoleGlyph, type RoleName } from "./RoleGlyph";

const RAMP = ["1 %", "3 %", "10 %", "30 %", ""] as const;

/** What the signs and colours mean, and how much of the comparison is bad: the footer of the page. */
export function Legend({ verdict }: { verdict: PartVerdict }) {
  const { t, format } = useI18n();
  const words = t.compare.legend;
  const roles: [RoleName, string][] = [
    ["origin", t.compare.roles.origin],
    ["inherited", t.compare.roles.inherited],
    ["amplified", t.compare.roles.amplified],
    ["healed", t.compare.roles.healed],
    ["unmatched", t.compare.roles.unmatched],
    ["nodata", t.compare.roles.noData],
    ["notcomparable", t.compare.roles.notComparable],
  ];
  return (
    <section className={styles.legend} aria-label={words.label}>
      <span>{words.difference}</span>
      <span className={styles.item}>
        <i className={`${styles.swatch} ${styles.below}`} />
        {words.below}
      </span>
      <span className={styles.ramp}>
        {RAMP.map((limit, level) => (
          <span key={limit} className={styles.item}>
            <i className={`${styles.swatch} ${level < 3 ? styles.outlined : ""}`} style={{ background: `var(--r${level + 1})` }} />
            {limit}
          </span>
        ))}
      </span>
      <span className={`${styles.item} ${styles.minor}`}>
        <svg width="18" height="8" viewBox="0 0 18 8" aria-hidden="true">
          <path d="M0 4h17" stroke="var(--ctl)" />
          <path d="M17 0v8" stroke="var(--text2)" strokeWidth="1.5" />
        </svg>
        {words.worstInside}
      </span>
      <span className={`${styles.bar} ${styles.minor}`} />
      {roles.map(([name, text]) => (
        <span key={name} className={`${styles.item} ${name === "nodata" ? styles.minor : ""}`}>
          <RoleGlyph name={name} size={11} />
          {text.toLowerCase()}
        </span>
      ))}
      <span className={styles.end}>
        {words.diverged(format.count(verdict.counts.diverged), format.count(verdict.counts.pairs - verdict.counts.incomparable))}
      </span>
      <button type="button" className={styles.keys} onClick={openKeys}>
        <kbd>?</kbd> {words.keys}
      </button>
    </section>
  );
}
