import type { Inventory } from "../api/types";
import { useI18n } from "../i18n";
import { Fact, Structure } from "./facts";
import { dataLine, extentLine, frameworkLine } from "./run-facts";

/** What a run holds, as the server read it: dumps, the tables of an RL loop, the trainer's configuration. Any of them may be all there is. */
export function InventoryFacts({ inventory }: { inventory: Inventory }) {
  const { t, format } = useI18n();
  const { stages, steps, ranks, counts, key_data: keyData, configuration } = inventory;
  return (
    <>
      {counts.dumps === 0 ? null : (
        <>
          {inventory.framework === null ? null : <Fact name={t.card.framework}>{frameworkLine(inventory.framework, inventory, t)}</Fact>}
          <Fact name={t.card.data}>{dataLine(inventory, t)}</Fact>
          <Fact name={t.card.extent}>
            {t.card.extentLine(
              extentLine(stages.length, steps.length, ranks.length, t, format),
              t.card.records(counts.records, format.count(counts.records)),
            )}
          </Fact>
          <Fact name={t.card.structure}>
            <Structure missing={inventory.missing} />
          </Fact>
        </>
      )}
      {keyData ? <Fact name={t.loop.pipeline.title}>{t.loop.key.tables(keyData.tables, format.count(keyData.tables))}</Fact> : null}
      {configuration ? (
        <Fact name={t.card.configuration}>
          <code>{configuration}</code>
        </Fact>
      ) : null}
    </>
  );
}
