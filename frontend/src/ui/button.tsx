import type { ComponentPropsWithRef } from "react";
import styles from "./button.module.css";

type Look = "plain" | "primary" | "quiet" | "link";

interface Props extends ComponentPropsWithRef<"button"> {
  look?: Look;
  /** A key that does the same, shown inside. */
  shortcut?: string;
}

/**
 * `primary` is ink and stands once on a page. A button that cannot act now stays focusable and says why in its own words
 * (`aria-disabled`), so a screen reader finds it.
 */
export function Button({ look = "plain", shortcut, className, children, onClick, ...rest }: Props) {
  const resting = rest["aria-disabled"] === true || rest["aria-disabled"] === "true";
  return (
    <button
      type="button"
      className={[styles.button, styles[look], className].filter(Boolean).join(" ")}
      onClick={resting ? undefined : onClick}
      {...rest}
    >
      {children}
      {shortcut === undefined ? null : (
        <span className={styles.key} aria-hidden="true">
          {shortcut}
        </span>
      )}
    </button>
  );
}
