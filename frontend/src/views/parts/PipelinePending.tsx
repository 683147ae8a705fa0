import type { ApiProblem } from "../../api/types";
import { useI18n } from "../../i18n";
import { problemSentence } from "../../i18n/errors";
import { Glyph } from "../../ui/glyph";
import styles from "./pipeline.module.css";

/** In place of the pipeline: key data that are still being compared, with the room that they will take, or why they could not be. */
export function PipelinePending({ error }: { error: ApiProblem | null }) {
  const { t, language } = useI18n();
  const words = t.loop.pipeline;
  return (
    <section className={styles.section} aria-label={words.title} data-pending={error === null}>
      <header className={styles.header}>
        <h2>{words.title}</h2>
        <span className={styles.note} role={error === null ? "status" : "alert"}>
          <Glyph name={error === null ? "running" : "failed"} size={12} />{" "}
          {error === null ? words.comparing : `${words.failed} ${problemSentence(error, language)}`}
        </span>
      </header>
    </section>
  );
}
