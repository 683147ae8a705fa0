import type { ComponentPropsWithRef } from "react";
import styles from "./icon-button.module.css";

interface Props extends ComponentPropsWithRef<"button"> {
  label: string;
}

/** A button that shows a sign only; its name is read aloud and shown on hover. */
export function IconButton({ label, className, children, ...rest }: Props) {
  return (
    <button type="button" aria-label={label} title={label} className={[styles.button, className].filter(Boolean).join(" ")} {...rest}>
      {children}
    </button>
  );
}
