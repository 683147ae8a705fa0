import type { ReactNode } from "react";
import type { PartVerdict } from "../../api/types";
import { useI18n } from "../../i18n";
import { Glyph } from "../../ui/glyph";
import styles from "./not-comparable.module.css";
import { premiseText } from "./words";

/** Which premise failed, what that means, what to do: in place of the detail, because there is no number to look at. */
export function NotComparable({ verdict, children }: { verdict: PartVerdict; children: ReactNode }) {
  const { t } = useI18n();
  const words = t.compare.notComparable;
  const ending = verdict.premises.filter(({ code, state }) => state === "failed" && ["tokens", "length", "overlap"].includes(code));
  return (
    <div className={styles.pane}>
      <section className={styles.why} aria-label={words.title}>
        <h2>{words.title}</h2>
        {ending.map((premise) => (
          <div key={premise.code} className={styles.premise}>
            <h3>
              <Glyph name="failed" size={13} /> {premiseText(premise, t.compare)}
            </h3>
            <p>{words.what[premise.code]}</p>
            <h4>{words.doHeading}</h4>
            <p>{words.todo[premise.code]}</p>
          </div>
        ))}
        <p className={styles.note}>{words.stillTree}</p>
      </section>
      {children}
    </div>
  );
}
