import { Link } from "wouter";
import { asRequestError } from "../../api/problem";
import { useRun } from "../../api/queries";
import type { Run } from "../../api/types";
import { useI18n } from "../../i18n";
import { errorSentence, problemSentence } from "../../i18n/errors";
import { bytes, share } from "../../i18n/format";
import { Digest, Fact, Noted, Unreadable } from "../../ui/facts";
import { Glyph } from "../../ui/glyph";
import { Header } from "../../ui/header";
import { InventoryFacts } from "../../ui/inventory-facts";
import { Notice } from "../../ui/notice";
import { useTitle } from "../../ui/use-title";
import { Aside } from "./Aside";
import { DeleteRun } from "./DeleteRun";
import { Dumps } from "./Dumps";
import styles from "./run.module.css";
import { UsedBy } from "./UsedBy";

export default function RunPage({ id }: { id: string }) {
  const { t, language } = useI18n();
  const { data: run, error } = useRun(id);
  useTitle(run === undefined ? t.product : t.run.documentTitle(run.name));
  const gone = error !== null && asRequestError(error).status === 404;
  return (
    <div className={styles.page}>
      <Header crumbs={run === undefined || gone ? undefined : <span className={styles.crumb}>{run.name}</span>} />
      <main id="main" tabIndex={-1} className={styles.main}>
        {gone ? (
          <Notice title={t.run.notFoundTitle} actions={<Link href="/">{t.common.back}</Link>} role="alert">
            <p>{t.run.notFoundText}</p>
          </Notice>
        ) : run !== undefined ? (
          <OneRun run={run} />
        ) : error !== null ? (
          <Notice title={t.run.loadFailed} actions={<Link href="/">{t.common.back}</Link>} role="alert">
            <p>{errorSentence(error, language)}</p>
          </Notice>
        ) : (
          <p className={styles.loading} role="status">
            {t.run.loading}
          </p>
        )}
      </main>
    </div>
  );
}

function OneRun({ run }: { run: Run }) {
  const { t } = useI18n();
  return (
    <div className={styles.column}>
      <h1 className={styles.title}>{run.name}</h1>
      <State run={run} />
      <section aria-label={t.run.facts}>
        <RunFacts run={run} />
      </section>
      {run.inventory === null ? null : (
        <>
          {run.inventory.counts.dumps === 0 ? null : <Dumps dumps={run.inventory.dumps} />}
          <Aside aside={run.inventory.left_aside} />
        </>
      )}
      <UsedBy run={run.id} />
      <DeleteRun run={run.id} />
    </div>
  );
}

/** Where the server is with it; nothing once it is ready. */
function State({ run }: { run: Run }) {
  const { t, language } = useI18n();
  if (run.state === "ready") return null;
  if (run.state === "failed") {
    return (
      <p className={styles.problem} role="alert">
        <Glyph name="failed" />
        <span>{run.error === null ? t.card.failed : problemSentence(run.error, language)}</span>
      </p>
    );
  }
  const { fraction } = run.progress;
  const word = run.state === "queued" ? t.card.queued : fraction === undefined ? t.card.parsing : t.card.parsingPercent(share(fraction, 1));
  return (
    <p className={styles.state} role="status">
      <Glyph name={run.state === "queued" ? "queued" : "running"} /> {word} · {t.run.whileReading}
    </p>
  );
}

function RunFacts({ run }: { run: Run }) {
  const { t, format } = useI18n();
  const { inventory } = run;
  const sent = new Date(run.created_at);
  return (
    <dl className={styles.facts}>
      {inventory === null ? null : (
        <>
          <Fact name={t.card.role}>{roleLine(inventory.role_evidence, inventory.role, t)}</Fact>
          <InventoryFacts inventory={inventory} />
          <Unreadable dumps={inventory.unreadable} />
          <Noted notes={inventory.notes} />
        </>
      )}
      <Digest digest={run.sha256} />
      <Fact name={t.run.sent}>
        <time dateTime={run.created_at}>{format.moment(sent)}</time> · {bytes(run.size)}
      </Fact>
    </dl>
  );
}

function roleLine(evidence: string, role: "train" | "infer" | "unknown", t: ReturnType<typeof useI18n>["t"]): string {
  const told = t.card.evidence[evidence];
  return told === undefined || role === "unknown" ? t.card.roleUnknown : t.card.roleGuessed(t.card.roleNames[role], told);
}
