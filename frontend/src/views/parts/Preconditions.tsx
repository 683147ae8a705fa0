import { Check, Minus, X } from "lucide-react";
import { Fragment, useState } from "react";
import type { Precondition, PreconditionSide } from "../../api/run-verdict";
import { useI18n } from "../../i18n";
import { Button } from "../../ui/button";
import { SideMark } from "../../ui/side";
import { Breakable } from "./Breakable";
import { valueText } from "./run-words";
import styles from "./tables.module.css";

const SIDES = ["left", "right"] as const;

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
  const sides = shown.length === 0 ? [] : SIDES;
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
            <Fragment key={one.code}>
              <tr>
                <th scope="row" className={styles.sentence}>
                  {one.text[language]}
                  <span className={styles.why}>{words.wanted(one.wanted)}</span>
                </th>
                {SIDES.map((side) => (
                  <td key={side}>
                    <SideState state={one[side]} />
                  </td>
                ))}
              </tr>
              <Equations precondition={one} names={names} />
            </Fragment>
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

/** How a side's value comes about, with the numbers put in, or why there is none: wider than a column, and once where both say the same. */
function Equations({ precondition, names }: { precondition: Precondition; names: Record<"left" | "right", string> }) {
  const { language } = useI18n();
  const texts = new Map<string, ("left" | "right")[]>();
  for (const side of SIDES) {
    const text = precondition[side].text?.[language];
    if (text !== undefined) texts.set(text, [...(texts.get(text) ?? []), side]);
  }
  if (texts.size === 0) return null;
  return (
    <tr className={styles.equations}>
      <td colSpan={3}>
        <ul>
          {[...texts].map(([text, sides]) => (
            <li key={text}>
              {sides.map((side) => (
                <Fragment key={side}>
                  <SideMark side={side} />
                  <span className="visually-hidden">{names[side]}: </span>{" "}
                </Fragment>
              ))}
              <Breakable name={text} />
            </li>
          ))}
        </ul>
      </td>
    </tr>
  );
}

function SideState({ state: { state, path, value } }: { state: PreconditionSide }) {
  const { t } = useI18n();
  const Sign = { ok: Check, failed: X, unknown: Minus }[state];
  return (
    <span className={state === "failed" ? styles.bad : styles.quiet} title={path ?? undefined}>
      <Sign size={12} strokeWidth={2} aria-hidden="true" /> <b>{t.loop.preconditions.states[state]}</b>{" "}
      {path === null || state === "unknown" ? null : <span className={styles.set}>{valueText(value)}</span>}
    </span>
  );
}
