import { Component, type ReactNode } from "react";
import { messagesOf } from "../i18n";
import { Button } from "./button";
import { Notice } from "./notice";
import { preferences } from "./preferences";

/** The last resort: an error in the page itself. The address keeps the view state, so loading again loses nothing. */
export class ErrorBoundary extends Component<{ children: ReactNode }, { failed: boolean; detail: string }> {
  override state = { failed: false, detail: "" };

  static getDerivedStateFromError(error: unknown) {
    return { failed: true, detail: error instanceof Error ? error.message : String(error) };
  }

  override render() {
    if (!this.state.failed) return this.props.children;
    const t = messagesOf(preferences().language);
    return (
      <Notice
        glyph="failed"
        title={t.crash.title}
        role="alert"
        actions={
          <Button look="primary" onClick={() => window.location.reload()}>
            {t.crash.reload}
          </Button>
        }
      >
        <p>{t.crash.text}</p>
        <p>
          <code>{this.state.detail}</code>
        </p>
      </Notice>
    );
  }
}
