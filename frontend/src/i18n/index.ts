import { type Language, usePreferences } from "../ui/preferences";
import { type Format, formatOf } from "./format";
import { en, type Messages } from "./messages/en";
import { zh } from "./messages/zh";

export type { Format } from "./format";
export type { CompareMessages, Messages } from "./messages/en";

const MESSAGES: Record<Language, Messages> = { en, zh };

export function messagesOf(language: Language): Messages {
  return MESSAGES[language];
}

export interface I18n {
  readonly language: Language;
  readonly t: Messages;
  readonly format: Format;
}

/** `const { t, format } = useI18n()`: words and the formats that depend on the language. Numbers come from ./format directly. */
export function useI18n(): I18n {
  const { language } = usePreferences();
  return { language, t: MESSAGES[language], format: formatOf(language) };
}
