import { useMutation, useQueryClient } from "@tanstack/react-query";
import { type FormEvent, useId, useState } from "react";
import { aboutQuery, useAbout } from "../../api/queries";
import { forgetSecret, showSecret, useSenderIsKept } from "../../api/sender";
import { useI18n } from "../../i18n";
import { Button } from "../../ui/button";
import styles from "./sender-gate.module.css";

/**
 * Where the server asks who sends: said before anything is dropped, with the place to put a token. Once one is kept, a line that says so and
 * forgets it.
 */
export function SenderGate() {
  const about = useAbout().data;
  const kept = useSenderIsKept();
  if (about === undefined) return null;
  if (about.may_send) return kept ? <Kept /> : null;
  return <Gate stale={kept} />;
}

function Gate({ stale }: { stale: boolean }) {
  const { t } = useI18n();
  const words = t.sender;
  const queries = useQueryClient();
  const [secret, setSecret] = useState("");
  const title = useId();
  const problem = useId();
  const ask = useMutation({
    mutationFn: showSecret,
    onSuccess: (known) => (known ? queries.invalidateQueries({ queryKey: aboutQuery.queryKey }) : undefined),
  });
  const submit = (event: FormEvent) => {
    event.preventDefault();
    if (secret.trim() !== "" && !ask.isPending) ask.mutate(secret);
  };
  const wrong = ask.isError ? words.unreachable : ask.data === false ? words.wrong : null;
  return (
    <form className={styles.gate} aria-labelledby={title} onSubmit={submit}>
      <h2 id={title} className={styles.title}>
        {words.title}
      </h2>
      <p>{words.text}</p>
      {stale ? <p className={styles.problem}>{words.stale}</p> : null}
      <div className={styles.line}>
        <input
          type="password"
          autoComplete="off"
          className={styles.field}
          aria-label={words.field}
          aria-invalid={wrong !== null}
          aria-describedby={wrong === null ? undefined : problem}
          placeholder={words.field}
          value={secret}
          onChange={(event) => setSecret(event.target.value)}
        />
        <Button look="primary" type="submit" aria-disabled={secret.trim() === "" || ask.isPending}>
          {ask.isPending ? words.checking : words.use}
        </Button>
      </div>
      {wrong === null ? null : (
        <p id={problem} role="alert" className={styles.problem}>
          {wrong}
        </p>
      )}
    </form>
  );
}

function Kept() {
  const { t } = useI18n();
  const queries = useQueryClient();
  const forget = () => {
    forgetSecret();
    void queries.invalidateQueries({ queryKey: aboutQuery.queryKey });
  };
  return (
    <p className={styles.kept}>
      {t.sender.kept}{" "}
      <Button look="link" onClick={forget}>
        {t.sender.forget}
      </Button>
    </p>
  );
}
