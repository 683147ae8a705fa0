import { type ReactNode, useEffect, useRef } from "react";
import styles from "./dialog.module.css";

interface Props {
  label: string;
  onClose: () => void;
  children: ReactNode;
  className?: string | undefined;
}

/**
 * The browser's own modal dialog: it keeps the focus, gives it back, closes on Esc and hides the rest from a screen reader. A library's would
 * write a style element for its scroll lock, which the page's policy forbids.
 */
export function Dialog({ label, onClose, children, className }: Props) {
  const dialog = useRef<HTMLDialogElement>(null);
  useEffect(() => {
    const element = dialog.current;
    if (element !== null && !element.open) element.showModal();
    return () => element?.close();
  }, []);
  return (
    // biome-ignore lint/a11y/useKeyWithClickEvents: a click beside the dialog closes it; the key for that is Esc, which the element brings
    <dialog
      ref={dialog}
      aria-label={label}
      className={[styles.dialog, className].filter(Boolean).join(" ")}
      onClose={onClose}
      onClick={(event) => {
        if (event.target === dialog.current) onClose();
      }}
    >
      <div className={styles.body}>{children}</div>
    </dialog>
  );
}
