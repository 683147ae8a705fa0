import { useI18n } from "../../i18n";
import { bytesOf } from "../../i18n/format";
import { Button } from "../../ui/button";
import { type Side, SideMark } from "../../ui/side";
import { type SideView, sides } from "../../upload/side";
import styles from "./side-panel.module.css";

interface Props {
  side: Side;
  title: string;
  view: Extract<SideView, { phase: "empty" | "looking" | "lost" }>;
  over: boolean;
  closed: boolean;
  onChooseFiles: () => void;
  onChooseFolder: () => void;
}

export function EmptyZone({ side, title, view, over, closed, onChooseFiles, onChooseFolder }: Props) {
  const { t } = useI18n();
  const invitation = side === "left" ? t.landing.dropTrain : t.landing.dropInfer;
  return (
    <div className={styles.zone}>
      <p className={styles.zoneName}>
        <SideMark side={side} />
        {title}
      </p>
      <div className={styles.invitation}>
        <FolderIcon />
        <p className={styles.invitationTitle}>
          {closed ? t.sender.zone : over ? t.landing.dropNow : view.phase === "lost" ? t.card.lostTitle(view.name) : invitation}
        </p>
        {closed ? <p className={styles.invitationText}>{t.sender.zoneText}</p> : <ZoneText view={view} />}
        <div className={styles.invitationButtons}>
          <Button aria-disabled={closed} onClick={onChooseFiles}>
            {t.landing.chooseFiles}
          </Button>
          <Button aria-disabled={closed} onClick={onChooseFolder}>
            {t.landing.chooseFolder}
          </Button>
          {view.phase === "lost" ? (
            <Button look="quiet" onClick={() => sides[side].remove()}>
              {t.card.remove}
            </Button>
          ) : null}
        </div>
      </div>
    </div>
  );
}

function ZoneText({ view }: { view: Props["view"] }) {
  const { t, format } = useI18n();
  if (view.phase === "looking") {
    return (
      <p className={styles.invitationText} role="status">
        {view.logs !== undefined
          ? t.card.lookingThroughLogs(...bytesOf(view.logs.read, view.logs.of))
          : view.count === 0
            ? t.card.looking
            : t.landing.reading(view.count, format.count(view.count))}
      </p>
    );
  }
  if (view.phase === "lost") {
    const [done, all] = bytesOf(view.sent, view.total);
    return <p className={styles.invitationText}>{t.card.lostText(done, all)}</p>;
  }
  return <p className={styles.invitationText}>{t.landing.formats}</p>;
}

function FolderIcon() {
  return (
    <svg className={styles.folder} width="36" height="28" viewBox="0 0 36 28" fill="none" strokeWidth="1.4" aria-hidden="true">
      <path
        stroke="currentcolor"
        strokeLinejoin="round"
        d="M1.5 4.5a2 2 0 0 1 2-2h8.2l3 4h17.8a2 2 0 0 1 2 2v16a2 2 0 0 1-2 2h-29a2 2 0 0 1-2-2Z"
      />
      <path stroke="currentcolor" strokeLinecap="round" strokeLinejoin="round" d="M18 11v9.5m-4-4 4 4 4-4" />
    </svg>
  );
}
