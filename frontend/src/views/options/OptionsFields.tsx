import { useId } from "react";
import { useRun, useRuns } from "../../api/queries";
import type { Inventory } from "../../api/types";
import { useI18n } from "../../i18n";
import { errorSentence } from "../../i18n/errors";
import { type Side, SideMark } from "../../ui/side";
import { type Choices, digits, heldBy, PLACES, type Place, runIdOf } from "./choices";
import styles from "./options.module.css";

export interface OptionsOf {
  choices: Choices;
  onChange: (choices: Choices) => void;
  inventories: Readonly<Record<Side, Inventory | null>>;
  titles: Readonly<Record<Side, string>>;
}

const SIDES = ["left", "right"] as const;

/** Step, rank and stage of each side, exact, and the baseline. What an inventory holds is offered; before it is known a value is typed. */
export function OptionsFields({ choices, onChange, inventories, titles }: OptionsOf) {
  const { t } = useI18n();
  const words = t.options;
  // A side whose dump was not read yet may hold stages; two that hold none have nothing to choose.
  const places = PLACES.filter(
    (place) =>
      place !== "stage" ||
      choices.stage.left + choices.stage.right !== "" ||
      SIDES.some((side) => heldBy(inventories[side], "stage")?.length !== 0),
  );
  return (
    <div className={styles.fields}>
      <p className={styles.hint}>{words.hint}</p>
      {places.map((place) => (
        <fieldset key={place} className={styles.place}>
          <legend>{words.places[place]}</legend>
          {SIDES.map((side) => (
            <PlaceField
              key={side}
              place={place}
              side={side}
              title={titles[side]}
              held={heldBy(inventories[side], place)}
              value={choices[place][side]}
              empty={choices[place][side === "left" ? "right" : "left"] === "" ? words.all : words.same}
              onChange={(value) => onChange({ ...choices, [place]: { ...choices[place], [side]: value } })}
            />
          ))}
        </fieldset>
      ))}
      <label className={styles.check}>
        <input type="checkbox" checked={choices.exact} onChange={({ target }) => onChange({ ...choices, exact: target.checked })} />
        <span>
          {words.exact} <span className={styles.note}>{words.exactNote}</span>
        </span>
      </label>
      <Baseline value={choices.baseline} onChange={(baseline) => onChange({ ...choices, baseline })} />
    </div>
  );
}

interface PlaceFieldProps {
  place: Place;
  side: Side;
  title: string;
  held: readonly string[] | null;
  value: string;
  empty: string;
  onChange: (value: string) => void;
}

function PlaceField({ place, side, title, held, value, empty, onChange }: PlaceFieldProps) {
  const { t } = useI18n();
  const name = t.options.of(t.options.places[place], title);
  // What was chosen before the dump was read stays in sight, also where the dump does not hold it.
  const offered = held === null || value === "" || held.includes(value) ? held : [...held, value];
  return (
    <span className={styles.choice}>
      <SideMark side={side} />
      <span className={styles.side} aria-hidden="true">
        {title}
      </span>
      {offered === null ? (
        <input
          type="text"
          aria-label={name}
          inputMode={place === "stage" ? "text" : "numeric"}
          placeholder={empty}
          value={value}
          onChange={({ target }) => onChange(place === "stage" ? target.value.replace(/:/g, "") : digits(target.value))}
        />
      ) : offered.length < 2 && value === "" ? (
        <span className={styles.only}>{offered[0] === undefined ? t.options.none : t.options.only(offered[0])}</span>
      ) : (
        <select aria-label={name} value={value} onChange={({ target }) => onChange(target.value)}>
          <option value="">{empty}</option>
          {offered.map((one) => (
            <option key={one}>{one}</option>
          ))}
        </select>
      )}
    </span>
  );
}

/** A second dump of the left side: a run that is here already, by its link or from the list of those that were sent. */
function Baseline({ value, onChange }: { value: string; onChange: (value: string) => void }) {
  const { t, language } = useI18n();
  const words = t.options;
  const field = useId();
  const list = useId();
  const id = runIdOf(value);
  const run = useRun(/^[\w-]{6,32}$/.test(id) ? id : null);
  const recent = useRuns().data?.results ?? [];
  return (
    <div className={styles.baseline}>
      <label htmlFor={field}>{words.baseline}</label>
      <input
        id={field}
        type="text"
        list={list}
        spellCheck={false}
        autoComplete="off"
        placeholder={words.baselinePlaceholder}
        value={value}
        onChange={({ target }) => onChange(target.value)}
      />
      <datalist id={list}>
        {recent
          .filter(({ state }) => state === "ready")
          .map((one) => (
            <option key={one.id} value={one.id}>
              {one.name}
            </option>
          ))}
      </datalist>
      <p className={styles.note} role="status">
        {id === "" ? (
          words.baselineNote
        ) : run.data !== undefined ? (
          words.baselineIs(run.data.name)
        ) : run.error !== null ? (
          <span className={styles.problem}>{errorSentence(run.error, language)}</span>
        ) : run.isFetching ? (
          words.baselineLooking
        ) : (
          <span className={styles.problem}>{words.baselineUnknown}</span>
        )}
      </p>
    </div>
  );
}
