import { Check, Minus, X } from "lucide-react";
import { useState } from "react";
import type { Precondition, PreconditionSide } from "../../api/run-verdict";
import { useI18n } from "../../i18n";
import { Button } from "../../ui/button";
import { SideMark } from "../../ui/side";
import { valueText } from "./run-words";
import styles from "./tables.module.css";

/** What two dumps need to be comparable, with what each configuration says: those that fail first, those that hold on request. */
export function Preconditions({
  preconditions,
  names,
}: {
  preconditions: readonly Precondition[];
  names: Record<"left" | "right", string>;
}) {
  const { t, language, format } = useI18n();
  const words = t.loop.preconditions;
  const [all, setAll] = useState(false);
  if (preconditions.length === 0) return null;
  const states = ({ left, right }: Precondition) => [left.state, right.state];
  // What fails, what one side leaves open, what holds, and last what no configuration says.
  const rank = (one: Precondition) =>
    states(one).includes("failed") ? 0 : !states(one).includes("unknown") ? 2 : states(one).includes("ok") ? 1 : 3;
  const sorted = [...preconditions].sort((a, b) => rank(a) - rank(b));
  const holding = sorted.filter((one) => rank(one) === 2).length;
  const unknown = sorted.filter((one) => rank(one) === 3).length;
  const shown = all ? sorted : sorted.filter((one) => rank(one) < 2);
  // Nothing to compare side by side where no configuration says anything.
  const sides = shown.length === 0 ? [] : (["left", "right"] as const);
  return (
    <section className={styles.section} aria-label={words.title}>
      <table className={styles.table}>
        <thead>
          <tr>
            <th scope="col">
              <h2>{words.title}</h2>
            </th>
            {sides.map((side) => (
              <th key={side} scope="col" className={styles.side} title={names[side]}>
                <SideMark side={side} /> {names[side]}
              </th>
            ))}
          </tr>
        </thead>
        <tbody>
          {shown.map((one) => (
            <tr key={one.code}>
              <th scope="row" className={styles.sentence}>
                {one.text[language]}
                <span className={styles.why}>{words.wanted(one.wanted)}</span>
              </th>
              {(["left", "right"] as const).map((side) => (
                <td key={side}>
                  <SideState state={one[side]} />
                </td>
              ))}
            </tr>
          ))}
        </tbody>
      </table>
      {holding + unknown === 0 ? null : (
        <p className={styles.more}>
          {all || holding === 0 ? null : <span>{words.holding(holding, format.count(holding))} </span>}
          {all || unknown === 0 ? null : <span>{words.unknown(unknown, format.count(unknown))} </span>}
          <Button look="link" onClick={() => setAll(!all)}>
            {all ? words.hide : words.show}
          </Button>
        </p>
      )}
    </section>
  );
}

function SideState({ state: { state, path, value, text } }: { state: PreconditionSide }) {
  const { t, language } = useI18n();
  const Sign = { ok: Check, failed: X, unknown: Minus }[state];
  return (
    <span className={state === "failed" ? styles.bad : styles.quiet} title={path ?? undefined}>
      <Sign size={12} strokeWidth={2} aria-hidden="true" /> <b>{t.loop.preconditions.states[state]}</b>{" "}
      {text !== undefined ? (
        <span className={styles.equation}>{text[language]}</span>
      ) : path === null ? null : (
        <span className={styles.set}>{valueText(value)}</span>
      )}
    </span>
  );
}
