import { useMemo } from "react";
import { readTheme, type Theme } from "../../paint/theme";
import { usePreferences } from "../../ui/preferences";

/** The colours of the moment for the painters: read again when the theme changes, so that a canvas follows the page. */
export function useTheme(): Theme {
  const { theme } = usePreferences();
  // biome-ignore lint/correctness/useExhaustiveDependencies: the style sheet reads `theme` off the root, where preferences put it
  return useMemo(() => readTheme(document.documentElement), [theme]);
}
