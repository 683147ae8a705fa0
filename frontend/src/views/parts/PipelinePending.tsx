import type { ApiProblem } from "../../api/types";
import { useI18n } from "../../i18n";
import { problemSentence } from "../../i18n/errors";
import { Glyph } from "../../ui/glyph";
import styles from "./pipeline.module.css";

interface Props {
  error: ApiProblem | null;
  /** The comparison ended before their turn came. */
  stopped?: boolean;
}

/** In place of the pipeline: key data that are still being compared, with the room that they will take, or why they were or could not be. */
export function PipelinePending({ error, stopped = false }: Props) {
  const { t, language } = useI18n();
  const words = t.loop.pipeline;
  const going = error === null && !stopped;
  return (
    <section className={styles.section} aria-label={words.title} data-pending={going}>
      <header className={styles.header}>
        <h2>{words.title}</h2>
        <span className={styles.note} role={error === null ? "status" : "alert"}>
          <Glyph name={going ? "running" : error === null ? "cancelled" : "failed"} size={12} />{" "}
          {going ? words.comparing : error === null ? words.stopped : `${words.failed} ${problemSentence(error, language)}`}
        </span>
      </header>
    </section>
  );
}
