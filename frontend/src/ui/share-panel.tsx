import { Popover } from "radix-ui";
import { type ReactNode, useRef, useState } from "react";
import { useAbout } from "../api/queries";
import type { About } from "../api/types";
import { useI18n } from "../i18n";
import { addressOf, flushViewState, viewState } from "../use-view-state";
import { announce } from "./announce";
import { Button } from "./button";
import { copySelection, copyText } from "./copy";
import { CopyButton } from "./copy-button";
import styles from "./share-panel.module.css";

interface Props {
  /** The button that opens it. */
  children: ReactNode;
  open?: boolean;
  onOpenChange?: (open: boolean) => void;
}

/**
 * Copy link, with exactly what is on screen. The address is the one that teammates reach where the server knows it. Where copying is not
 * allowed (a page on a plain host name is no secure context) the link stands selected in its field.
 */
export function SharePanel({ children, ...state }: Props) {
  const { t } = useI18n();
  return (
    <Popover.Root {...state}>
      <Popover.Trigger asChild>{children}</Popover.Trigger>
      <Popover.Portal>
        <Popover.Content className={styles.panel} align="end" sideOffset={6} collisionPadding={12} aria-label={t.share.title}>
          <ShareBody />
        </Popover.Content>
      </Popover.Portal>
    </Popover.Root>
  );
}

function ShareBody() {
  const { t } = useI18n();
  const about = useAbout();
  const field = useRef<HTMLInputElement>(null);
  const [result, setResult] = useState<"copied" | "selected" | null>(null);
  const link = shareLink(about.data?.public_url ?? null, window.location.origin);
  const copy = async () => {
    flushViewState();
    const done = (await copyText(link)) || (field.current !== null && copySelection(field.current));
    field.current?.select();
    setResult(done ? "copied" : "selected");
    announce(done ? t.share.copied : t.share.selected);
  };
  return (
    <>
      <h2>{t.share.title}</h2>
      <p className={styles.lead}>{t.share.lead}</p>
      <div className={styles.link}>
        <input
          ref={field}
          className={styles.field}
          aria-label={t.share.link}
          readOnly
          value={link}
          onFocus={(event) => event.target.select()}
        />
        <Button look="primary" onClick={() => void copy()}>
          {result === "copied" ? t.share.copied : t.share.copy}
        </Button>
      </div>
      {result === "selected" ? <p className={styles.lead}>{t.share.selected}</p> : null}
      {about.data === undefined ? null : <Reach about={about.data} />}
    </>
  );
}

/** Who can open the link, and how to let others in. */
function Reach({ about }: { about: About }) {
  const { t } = useI18n();
  if (about.loopback_only) {
    const command = about.share_command ?? t.share.loopbackCommand;
    return (
      <div className={styles.loopback}>
        <p>{t.share.loopback}</p>
        <p className={styles.how}>
          {t.share.loopbackHow} <code>{command}</code>
          <CopyButton text={command} />
        </p>
      </div>
    );
  }
  return <p className={styles.lead}>{t.share.reachable(about.public_url)}</p>;
}

/** The page's own origin where it is reached by one that others reach too, else the address that the server gives out. */
export function shareLink(publicUrl: string | null, origin: string): string {
  const onLoopback = /^https?:\/\/(localhost|127\.|\[::1\])/.test(origin);
  const base = onLoopback && publicUrl !== null ? publicUrl.replace(/\/+$/, "") : origin;
  return base + addressOf(viewState());
}
