import { lazy, Suspense, useMemo } from "react";
import { Route, Switch, useLocation } from "wouter";
import { messagesOf, useI18n } from "./i18n";
import { useAnnouncement } from "./ui/announce";
import styles from "./ui/app.module.css";
import { type Command, useCommands } from "./ui/commands";
import { ErrorBoundary } from "./ui/error-boundary";
import { Header } from "./ui/header";
import { KeysPanel } from "./ui/keys-panel";
import { Palette } from "./ui/palette";
import { setLanguage, setTheme } from "./ui/preferences";
import { closePanel, openKeys, openPalette, usePanel } from "./ui/shell";
import { LandingPage } from "./views/landing/LandingPage";
import { NotFoundPage } from "./views/NotFoundPage";

// Apart from the landing page: whoever only drops a dump does not load the workbench first.
const ComparisonPage = lazy(() => import("./views/comparison/ComparisonPage"));
const RunPage = lazy(() => import("./views/run/RunPage"));

export function App() {
  const { t } = useI18n();
  const panel = usePanel();
  const announcement = useAnnouncement();
  useCommands(useGeneralCommands());
  return (
    <>
      <button type="button" className={styles.skip} onClick={() => document.getElementById("main")?.focus()}>
        {t.common.skip}
      </button>
      <ErrorBoundary>
        <Suspense fallback={<Header />}>
          <Switch>
            <Route path="/" component={LandingPage} />
            <Route path="/c/:slug">{({ slug }) => <ComparisonPage key={slug} slug={slug} />}</Route>
            <Route path="/r/:slug">{({ slug }) => <RunPage key={slug} id={slug} />}</Route>
            <Route component={NotFoundPage} />
          </Switch>
        </Suspense>
      </ErrorBoundary>
      {panel === "palette" ? <Palette onClose={closePanel} /> : null}
      {panel === "keys" ? <KeysPanel onClose={closePanel} /> : null}
      <div role="status" aria-live="polite" className="visually-hidden">
        {announcement}
      </div>
    </>
  );
}

/** What works on every page. */
function useGeneralCommands(): readonly Command[] {
  const { t, language } = useI18n();
  const [, navigate] = useLocation();
  return useMemo(() => {
    const other = language === "en" ? "zh" : "en";
    const theme = (id: "system" | "light" | "dark", name: string): Command => ({
      id: `theme-${id}`,
      title: t.palette.themeTo(name),
      group: "general",
      run: () => setTheme(id),
    });
    return [
      { id: "home", title: t.palette.goHome, group: "general", keys: ["g"], run: () => navigate("/") },
      {
        id: "language",
        // In the language it leads to: whoever needs it may not read the present one.
        title: messagesOf(language).palette.switchLanguage,
        group: "general",
        run: () => setLanguage(other),
      },
      theme("system", t.header.themeSystem),
      theme("light", t.header.themeLight),
      theme("dark", t.header.themeDark),
      { id: "palette", title: t.palette.open, group: "general", keys: ["Ctrl+K"], keysOnly: true, run: openPalette },
      { id: "keys", title: t.palette.showKeys, group: "general", keys: ["?"], run: openKeys },
    ];
  }, [t, language, navigate]);
}
