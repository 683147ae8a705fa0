import { useEffect, useMemo, useState } from "react";
import { useKeyTables } from "../../api/key-data";
import { asRequestError } from "../../api/problem";
import type { KeyData, KeyTable } from "../../api/run-verdict";
import { useI18n } from "../../i18n";
import { errorSentence } from "../../i18n/errors";
import { Button } from "../../ui/button";
import { Segments } from "../../ui/segments";
import { useViewState } from "../../use-view-state";
import { KeySign } from "../parts/Pipeline";
import styles from "./key-data.module.css";
import { TableDetail } from "./TableDetail";
import { TablesList } from "./TablesList";
import { isDiffering, openingTable } from "./words";

interface Props {
  slug: string;
  data: KeyData;
  names: Record<"left" | "right", string>;
  /** The comparison is done, so the tables can be read. */
  ready: boolean;
}

/** From so many tables on, those that are equal are left out at first. */
const MANY = 9;

/** One key of the pipeline: its tables, and one of them in full. */
export function KeyDataPanel({ slug, data, names, ready }: Props) {
  const { t, language, format } = useI18n();
  const words = t.loop.key;
  const { data: answer, error, refetch } = useKeyTables(slug, data.n, ready);
  return (
    <section className={styles.panel} aria-label={words.grid(data.key)} data-key={data.key} data-testid="key-data">
      <header className={styles.header}>
        <KeySign state={data.state} />
        <h2>{data.key}</h2>
        <span className={styles.note}>
          {t.loop.keyDataStates[data.state]}
          {t.common.comma}
          {words.tables(data.tables, format.count(data.tables))}
        </span>
      </header>
      {answer !== undefined ? (
        <Tables key={data.n} slug={slug} data={data} tables={answer.tables} names={names} />
      ) : error !== null ? (
        <div className={styles.message} role="alert">
          <p>
            <b>{words.failedTitle}.</b> {errorSentence(error, language)}
          </p>
          {asRequestError(error).status === 404 ? null : <Button onClick={() => void refetch()}>{t.common.retry}</Button>}
        </div>
      ) : (
        <p className={styles.message} role="status">
          {ready ? words.loading : words.pending}
        </p>
      )}
    </section>
  );
}

function Tables({ slug, data, tables, names }: { slug: string; data: KeyData; tables: readonly KeyTable[]; names: Props["names"] }) {
  const { t, format } = useI18n();
  const words = t.loop.key;
  const [{ entry, row }, change] = useViewState();
  const differing = useMemo(() => tables.filter(isDiffering), [tables]);
  const choice = differing.length > 0 && differing.length < tables.length;
  const chosen = tables.find((table) => table.t === entry) ?? openingTable({ tables });
  const [all, setAll] = useState(tables.length <= MANY || (chosen !== null && !isDiffering(chosen)));
  const shown = choice && !all ? differing : tables;
  // A link may name a table that is not among those that differ.
  useEffect(() => {
    if (chosen !== null && !isDiffering(chosen)) setAll(true);
  }, [chosen]);
  return (
    <>
      {choice ? (
        <Segments
          className={styles.choice}
          label={words.show}
          value={all ? "all" : "differing"}
          options={[
            { value: "all", text: words.all(format.count(tables.length)) },
            { value: "differing", text: words.only(format.count(differing.length)) },
          ]}
          onChange={(value) => setAll(value === "all")}
        />
      ) : null}
      <TablesList
        label={words.grid(data.key)}
        tables={shown}
        selected={chosen?.t ?? null}
        onSelect={(n) => change({ table: data.n, entry: n, row: null })}
      />
      {chosen === null ? null : (
        <TableDetail
          key={chosen.t}
          slug={slug}
          data={data}
          table={chosen}
          names={names}
          row={row ?? 0}
          onRow={(next) => change({ table: data.n, entry: chosen.t, row: next })}
        />
      )}
    </>
  );
}
