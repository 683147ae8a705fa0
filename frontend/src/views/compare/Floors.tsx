import type { FloorSource, NodeSlot } from "../../api/types";
import { useI18n } from "../../i18n";
import { figure, percent } from "../../i18n/format";
import styles from "./detail.module.css";
import { slotName } from "./SlotTable";

interface Held {
  readonly slot: NodeSlot;
  readonly source: FloorSource;
}

/** What each slot was held against, and where that limit comes from: one line, the rest a key press away. */
export function Floors({ slots }: { slots: readonly NodeSlot[] }) {
  const { t } = useI18n();
  const words = t.compare.detail.floors;
  const held = slots.flatMap((slot): Held[] =>
    slot.floor === null || slot.floor_source === null ? [] : [{ slot, source: slot.floor_source }],
  );
  const shown = spokesman(held);
  if (shown === undefined) return null;
  const sources = [...new Set([shown, ...held].map(({ source }) => source))];
  return (
    <details className={styles.floors} data-testid="floors">
      <summary>{words.one(slotName(shown.slot), percent(figure(shown.slot.floor)), words.names[shown.source])}</summary>
      <dl>
        {sources.map((source) => (
          <div key={source}>
            <dt>{words.names[source]}</dt>
            <dd>
              {words.sources[source]}
              <ul>
                {held
                  .filter((own) => own.source === source)
                  .map(({ slot }) => (
                    <li key={`${slot.group}/${slot.slot}/${slot.order}`}>
                      {slotName(slot)} {percent(figure(slot.floor))}
                    </li>
                  ))}
              </ul>
            </dd>
          </div>
        ))}
      </dl>
    </details>
  );
}

/** The row's own number is that of an output: the first that differs, else the first. */
function spokesman(held: readonly Held[]): Held | undefined {
  const outputs = held.filter(({ slot }) => slot.group === "output" && !slot.elsewhere);
  const from = outputs.length > 0 ? outputs : held;
  return from.find(({ slot }) => slot.grade === "diverged") ?? from[0];
}
