import { X } from "lucide-react";
import { useI18n } from "../i18n";
import { type Command, keysText, useRegisteredCommands } from "./commands";
import { Dialog } from "./dialog";
import { IconButton } from "./icon-button";
import styles from "./keys-panel.module.css";

/** Every key that works on this page, by group: read from the commands themselves. */
export function KeysPanel({ onClose }: { onClose: () => void }) {
  const { t } = useI18n();
  const commands = useRegisteredCommands();
  const groups = new Map<Command["group"], Command[]>();
  for (const command of commands) {
    if (command.keys === undefined) continue;
    groups.set(command.group, [...(groups.get(command.group) ?? []), command]);
  }
  const order = Object.keys(t.palette.groups) as Command["group"][];
  return (
    <Dialog label={t.keys.title} onClose={onClose}>
      <header className={styles.header}>
        <h2>{t.keys.title}</h2>
        <IconButton label={t.common.close} onClick={onClose}>
          <X size={15} />
        </IconButton>
      </header>
      <div className={styles.groups}>
        {order
          .filter((group) => groups.has(group))
          .map((group) => (
            <section key={group} className={styles.group}>
              <h3>{t.palette.groups[group]}</h3>
              <dl>
                {groups.get(group)?.map((command) => (
                  <div key={command.id} className={styles.line}>
                    <dt>{command.title}</dt>
                    <dd>
                      {command.keys?.map((keys) => (
                        <kbd key={keys}>{keysText(keys)}</kbd>
                      ))}
                    </dd>
                  </div>
                ))}
              </dl>
            </section>
          ))}
      </div>
      <p className={styles.hint}>{t.keys.hint}</p>
    </Dialog>
  );
}
