import { useState } from "react";
import { type Messages, useI18n } from "../../i18n";
import { type Choices, optionsOf, PLACES } from "./choices";
import { OptionsFields, type OptionsOf } from "./OptionsFields";
import styles from "./options.module.css";

/** The options where a comparison is begun: folded away until asked for, and then said in one line what is chosen. */
export function OptionsField(of: OptionsOf) {
  const { t } = useI18n();
  const [open, setOpen] = useState(false);
  return (
    <details className={styles.options} onToggle={(event) => setOpen(event.currentTarget.open)}>
      <summary>{summaryOf(of.choices, t)}</summary>
      {open ? (
        <div className={styles.body}>
          <OptionsFields {...of} />
        </div>
      ) : null}
    </details>
  );
}

/** `Options: step 0:1, exact` */
export function summaryOf(choices: Choices, t: Messages): string {
  const options = optionsOf(choices);
  const chosen = PLACES.flatMap((place) => (options[place] === undefined ? [] : [`${t.options.places[place]} ${options[place]}`]));
  if (options.exact === true) chosen.push(t.options.exact);
  if (options.baseline !== undefined) chosen.push(t.options.baseline);
  return chosen.length === 0 ? t.options.title : t.options.chosen(chosen.join(t.common.comma));
}
