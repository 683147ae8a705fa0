import { X } from "lucide-react";
import type { PartVerdict } from "../../api/types";
import { useI18n } from "../../i18n";
import { Button } from "../../ui/button";
import { Dialog } from "../../ui/dialog";
import { IconButton } from "../../ui/icon-button";
import { Preconditions } from "./Preconditions";
import { Settings } from "./Settings";
import styles from "./settings-dialog.module.css";

type Configured = Pick<PartVerdict, "configurations" | "preconditions" | "findings">;

/** What the configurations say where two runs have one part each and the page is its tree: in a line, and behind it the tables. */
export function SettingsButton({ verdict, onOpen }: { verdict: Configured; onOpen: () => void }) {
  const { t, format } = useI18n();
  const { configurations = [], preconditions = [], findings } = verdict;
  if (configurations.length + preconditions.length === 0) return null;
  const matter = configurations.filter(({ matters }) => matters).length;
  const crossed = findings.some(({ code }) => code === "preconditions_failed");
  const failing = !crossed ? 0 : preconditions.filter(({ left, right }) => left.state === "failed" || right.state === "failed").length;
  const said = [
    matter > 0
      ? t.loop.chain.settings(matter, format.count(matter))
      : configurations.length > 0
        ? t.loop.settings.differ(configurations.length, format.count(configurations.length))
        : "",
    failing > 0 ? t.loop.premises.preconditions(failing, format.count(failing)) : "",
  ].filter(Boolean);
  return (
    <Button look="link" onClick={onOpen}>
      {said.length > 0 ? said.join(t.common.comma) : t.loop.settings.open}
    </Button>
  );
}

export function SettingsDialog({
  verdict,
  names,
  onClose,
}: {
  verdict: Configured;
  names: Record<"left" | "right", string>;
  onClose: () => void;
}) {
  const { t } = useI18n();
  const { configurations = [], preconditions = [] } = verdict;
  return (
    <Dialog label={t.loop.settings.open} onClose={onClose} className={styles.dialog}>
      <header className={styles.header}>
        <h2>{t.loop.settings.open}</h2>
        <IconButton label={t.common.close} onClick={onClose}>
          <X size={15} />
        </IconButton>
      </header>
      <div className={styles.tables}>
        {configurations.length > 0 ? null : <p className={styles.quiet}>{t.loop.settings.none}</p>}
        <Settings settings={configurations} names={names} />
        <Preconditions preconditions={preconditions} names={names} />
      </div>
    </Dialog>
  );
}
