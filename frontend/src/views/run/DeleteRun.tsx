import { useMutation, useQueryClient } from "@tanstack/react-query";
import { useState } from "react";
import { useLocation } from "wouter";
import { deleteRun, useComparisonsOfRun } from "../../api/queries";
import { useI18n } from "../../i18n";
import { errorSentence } from "../../i18n/errors";
import { Button } from "../../ui/button";
import { sides } from "../../upload/side";
import styles from "./run.module.css";

/** Two clicks, the second beside the question. What a comparison uses stays, and that is said before the server would. */
export function DeleteRun({ run }: { run: string }) {
  const { t, language } = useI18n();
  const words = t.run;
  const [asking, setAsking] = useState(false);
  const [, navigate] = useLocation();
  const queries = useQueryClient();
  const used = (useComparisonsOfRun(run).data?.results.length ?? 0) > 0;
  const remove = useMutation({
    mutationFn: () => deleteRun(queries, run),
    onSuccess: () => {
      // A side of the start page may still hold it.
      for (const side of Object.values(sides)) {
        const view = side.view();
        if (view.phase === "run" && view.id === run) side.remove();
      }
      navigate("/");
    },
  });
  return (
    <div className={styles.remove}>
      {used ? <p className={styles.quiet}>{words.inUse}</p> : null}
      {asking ? (
        <>
          <p>{words.removeAsk}</p>
          <div className={styles.buttons}>
            <Button aria-disabled={remove.isPending} onClick={() => remove.mutate()}>
              {remove.isPending ? words.removing : words.removeYes}
            </Button>
            <Button look="quiet" onClick={() => setAsking(false)}>
              {words.removeNo}
            </Button>
          </div>
        </>
      ) : (
        <Button aria-disabled={used} onClick={() => setAsking(true)}>
          {words.remove}
        </Button>
      )}
      {remove.error === null ? null : (
        <p role="alert" className={styles.failed}>
          {errorSentence(remove.error, language)}
        </p>
      )}
    </div>
  );
}
