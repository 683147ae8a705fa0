import { useSyncExternalStore } from "react";

/** What a reader chose for this browser: language and theme. Kept in localStorage where that is allowed, else for this page only. */
export type Language = "en" | "zh";
export type ThemeChoice = "system" | "light" | "dark";
export type Theme = "light" | "dark";

export interface Preferences {
  readonly language: Language;
  readonly themeChoice: ThemeChoice;
  /** The choice resolved against the system, as data-theme on the root says. */
  readonly theme: Theme;
}

const LANGUAGE_KEY = "probe.language";
const THEME_KEY = "probe.theme";
const systemDark = window.matchMedia("(prefers-color-scheme: dark)");
const listeners = new Set<() => void>();

function read(key: string): string | null {
  try {
    return localStorage.getItem(key);
  } catch {
    return null;
  }
}

function write(key: string, value: string | null): void {
  try {
    if (value === null) localStorage.removeItem(key);
    else localStorage.setItem(key, value);
  } catch {
    // Storage is forbidden here: the choice holds until the page is left.
  }
}

/** The first of the browser's languages that we speak; English where it speaks neither. */
export function languageOf(candidates: readonly string[]): Language {
  for (const candidate of candidates) {
    const primary = candidate.toLowerCase().split("-")[0];
    if (primary === "zh" || primary === "en") return primary;
  }
  return "en";
}

function resolve(choice: ThemeChoice): Theme {
  if (choice !== "system") return choice;
  return systemDark.matches ? "dark" : "light";
}

function initial(): Preferences {
  const language = read(LANGUAGE_KEY);
  const stored = read(THEME_KEY);
  const themeChoice: ThemeChoice = stored === "light" || stored === "dark" ? stored : "system";
  return {
    language: language === "en" || language === "zh" ? language : languageOf(navigator.languages ?? [navigator.language]),
    themeChoice,
    theme: resolve(themeChoice),
  };
}

let current = initial();
apply(current);

function apply(preferences: Preferences): void {
  const root = document.documentElement;
  root.dataset.theme = preferences.theme;
  root.lang = preferences.language === "zh" ? "zh-CN" : "en";
}

function publish(next: Preferences): void {
  current = next;
  apply(next);
  for (const listener of listeners) listener();
}

systemDark.addEventListener("change", () => publish({ ...current, theme: resolve(current.themeChoice) }));

export function setLanguage(language: Language): void {
  write(LANGUAGE_KEY, language);
  publish({ ...current, language });
}

export function setTheme(themeChoice: ThemeChoice): void {
  write(THEME_KEY, themeChoice === "system" ? null : themeChoice);
  publish({ ...current, themeChoice, theme: resolve(themeChoice) });
}

function subscribe(listener: () => void): () => void {
  listeners.add(listener);
  return () => listeners.delete(listener);
}

export function preferences(): Preferences {
  return current;
}

export function usePreferences(): Preferences {
  return useSyncExternalStore(subscribe, preferences);
}
