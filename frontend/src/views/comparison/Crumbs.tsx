import { MoveHorizontal } from "lucide-react";
import { Link } from "wouter";
import type { Comparison, ComparisonSide } from "../../api/types";
import { useI18n } from "../../i18n";
import { comparisonName } from "../../ui/headline";
import { extentLine, headerFacts, taskName } from "../../ui/run-facts";
import { type Side, SideMark } from "../../ui/side";
import { sideTitles } from "../../ui/side-words";
import styles from "./crumbs.module.css";

/** / name | ■ Train fsdp-1130 FSDP, bf16 ↔ ● Inference rollout-1130 vLLM, bf16 / step 2 · reference */
export function Crumbs({ comparison, part }: { comparison: Comparison; part: string | null }) {
  const { t, language } = useI18n();
  const { left, right } = comparison;
  const titles = sideTitles(left, right, t);
  const name = comparisonName(comparison, language);
  // The name that the server makes up repeats what stands beside it.
  const named = name !== "" && name !== `${left.name} | ${right.name}`;
  return (
    <div className={styles.crumbs}>
      {named ? (
        <>
          <span className={styles.slash} aria-hidden="true">
            /
          </span>
          <span className={styles.name} title={name}>
            {name}
          </span>
          <span className={styles.rule} aria-hidden="true" />
        </>
      ) : (
        <span className={styles.slash} aria-hidden="true">
          /
        </span>
      )}
      <span className={`${styles.sides} ${named ? styles.sidesBesideName : ""}`}>
        <SideName side="left" title={titles.left} run={left} />
        <MoveHorizontal className={styles.arrow} size={16} strokeWidth={1.4} aria-label={t.common.against} />
        <SideName side="right" title={titles.right} run={right} />
      </span>
      {part === null ? null : (
        <>
          <span className={`${styles.slash} ${styles.beforePart}`} aria-hidden="true">
            /
          </span>
          <span className={styles.part} title={part}>
            {part}
          </span>
        </>
      )}
      {comparison.previous === null ? null : (
        <Link href={`/c/${comparison.previous}`} className={styles.previous}>
          ← {t.mapping.previous}
        </Link>
      )}
      {comparison.read_only ? <span className={styles.readOnly}>{t.comparison.readOnly}</span> : null}
    </div>
  );
}

function SideName({ side, title, run }: { side: Side; title: string; run: ComparisonSide }) {
  const { t } = useI18n();
  const facts = headerFacts(run.inventory, t);
  return (
    <span className={styles.side} title={[run.name, facts].filter(Boolean).join(" · ")}>
      <span className={styles.named}>
        <SideMark side={side} />
        <span className={side === "left" ? styles.left : styles.right}>{title}</span>
        <span className={styles.runName}>{run.name}</span>
      </span>
      {facts === "" ? null : <span className={styles.facts}>{facts}</span>}
    </span>
  );
}

/** statistics · L0 · 1 rank; of a run verdict 4 stages × 3 steps × 1 rank */
export function Facts({ comparison }: { comparison: Comparison }) {
  const { t, format } = useI18n();
  const inventory = comparison.left.inventory;
  if (inventory === null) return null;
  const ranks = Math.max(1, inventory.ranks.length);
  const data = [inventory.task === null ? null : taskName(inventory.task, t), inventory.level].filter((part) => part !== null);
  if (comparison.verdict?.schema === "probe-web/run-verdict/1") {
    const stages = new Set(comparison.verdict.parts.map(({ stage }) => stage).filter((stage) => stage !== null));
    const steps = new Set(comparison.verdict.parts.map(({ step }) => step));
    if (inventory.counts.dumps === 0) return null;
    return [...data, extentLine(stages.size, steps.size, ranks, t, format)].join(" · ");
  }
  return [...data, t.card.ranks(ranks, format.count(ranks))].join(" · ");
}
