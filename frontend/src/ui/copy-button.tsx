import { Check, Copy } from "lucide-react";
import { useEffect, useState } from "react";
import { useI18n } from "../i18n";
import { announce } from "./announce";
import { copyText } from "./copy";
import { IconButton } from "./icon-button";

/** Copies a text; a tick for two seconds says that it did. */
export function CopyButton({ text, label, className }: { text: string; label?: string; className?: string | undefined }) {
  const { t } = useI18n();
  const [copied, setCopied] = useState(false);
  useEffect(() => {
    if (!copied) return;
    const timer = window.setTimeout(() => setCopied(false), 2000);
    return () => window.clearTimeout(timer);
  }, [copied]);
  const copy = async () => {
    const done = await copyText(text);
    setCopied(done);
    if (done) announce(t.common.copied);
  };
  return (
    <IconButton label={copied ? t.common.copied : (label ?? t.common.copy)} className={className} onClick={() => void copy()}>
      {copied ? <Check size={13} /> : <Copy size={13} />}
    </IconButton>
  );
}
