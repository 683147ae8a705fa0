import { Menu } from "lucide-react";
import { DropdownMenu } from "radix-ui";
import type { ReactNode } from "react";
import { Link } from "wouter";
import { useI18n } from "../i18n";
import { Button } from "./button";
import styles from "./header.module.css";
import { Logo } from "./logo";
import menu from "./menu.module.css";
import { type Language, setLanguage, setTheme, type ThemeChoice, usePreferences } from "./preferences";
import { openKeys, openPalette } from "./shell";

interface Props {
  /** Where the reader is: names of the comparison and its sides. */
  crumbs?: ReactNode;
  /** Facts at the right, such as "statistics · L0 · rank 0 of 1". */
  facts?: ReactNode;
}

/** The 40 px line at the top of every page. */
export function Header({ crumbs, facts }: Props) {
  const { t } = useI18n();
  return (
    <header className={styles.header}>
      <Link href="/" className={styles.home} aria-label={`${t.product}: ${t.common.home}`}>
        <Logo />
        <span className={crumbs === undefined ? undefined : styles.productBesideCrumbs}>{t.product}</span>
      </Link>
      <div className={styles.crumbs}>{crumbs}</div>
      {facts === undefined ? null : <div className={styles.facts}>{facts}</div>}
      <div className={styles.tools}>
        <Button look="quiet" className={styles.tool} onClick={openPalette}>
          {t.header.commands}
          <span className={styles.key} aria-hidden="true">
            Ctrl K
          </span>
        </Button>
        <ThemeMenu />
        <LanguageSwitch />
      </div>
      <PhoneMenu />
    </header>
  );
}

const LANGUAGES: readonly { language: Language; short: string; name: string }[] = [
  { language: "en", short: "EN", name: "English" },
  { language: "zh", short: "中", name: "中文" },
];

function LanguageSwitch() {
  const { t, language } = useI18n();
  return (
    // biome-ignore lint/a11y/useSemanticElements: a fieldset cannot be laid out as one joined control in every browser
    <div role="group" aria-label={t.header.language} className={styles.languages}>
      {LANGUAGES.map((choice) => (
        <button
          key={choice.language}
          type="button"
          lang={choice.language}
          aria-label={choice.language === "en" ? "EN, English" : choice.name}
          aria-pressed={choice.language === language}
          onClick={() => setLanguage(choice.language)}
        >
          {choice.short}
        </button>
      ))}
    </div>
  );
}

function useThemeNames(): readonly [ThemeChoice, string][] {
  const { t } = useI18n();
  return [
    ["system", t.header.themeSystem],
    ["light", t.header.themeLight],
    ["dark", t.header.themeDark],
  ];
}

function ThemeItems() {
  const { themeChoice } = usePreferences();
  return (
    <DropdownMenu.RadioGroup value={themeChoice} onValueChange={(value) => setTheme(value as ThemeChoice)}>
      {useThemeNames().map(([choice, name]) => (
        <DropdownMenu.RadioItem key={choice} value={choice} className={menu.item}>
          <DropdownMenu.ItemIndicator className={menu.tick}>✓</DropdownMenu.ItemIndicator>
          {name}
        </DropdownMenu.RadioItem>
      ))}
    </DropdownMenu.RadioGroup>
  );
}

function ThemeMenu() {
  const { t } = useI18n();
  return (
    <DropdownMenu.Root modal={false}>
      <DropdownMenu.Trigger asChild>
        <Button look="quiet" className={styles.tool}>
          {t.header.theme}
        </Button>
      </DropdownMenu.Trigger>
      <DropdownMenu.Portal>
        <DropdownMenu.Content className={menu.menu} align="end" sideOffset={4}>
          <ThemeItems />
        </DropdownMenu.Content>
      </DropdownMenu.Portal>
    </DropdownMenu.Root>
  );
}

/** At phone width the tools fold into one menu. */
function PhoneMenu() {
  const { t, language } = useI18n();
  return (
    <DropdownMenu.Root modal={false}>
      <DropdownMenu.Trigger asChild>
        <button type="button" className={styles.phoneMenu} aria-label={t.common.menu}>
          <Menu size={18} />
        </button>
      </DropdownMenu.Trigger>
      <DropdownMenu.Portal>
        <DropdownMenu.Content className={menu.menu} align="end" sideOffset={4}>
          <DropdownMenu.Item className={menu.item} onSelect={openPalette}>
            {t.header.commands}
          </DropdownMenu.Item>
          <DropdownMenu.Item className={menu.item} onSelect={openKeys}>
            {t.header.keys}
          </DropdownMenu.Item>
          <DropdownMenu.Separator className={menu.separator} />
          <DropdownMenu.Label className={menu.label}>{t.header.theme}</DropdownMenu.Label>
          <ThemeItems />
          <DropdownMenu.Separator className={menu.separator} />
          <DropdownMenu.Label className={menu.label}>{t.header.language}</DropdownMenu.Label>
          <DropdownMenu.RadioGroup value={language} onValueChange={(value) => setLanguage(value as Language)}>
            {LANGUAGES.map((choice) => (
              <DropdownMenu.RadioItem key={choice.language} value={choice.language} lang={choice.language} className={menu.item}>
                <DropdownMenu.ItemIndicator className={menu.tick}>✓</DropdownMenu.ItemIndicator>
                {choice.name}
              </DropdownMenu.RadioItem>
            ))}
          </DropdownMenu.RadioGroup>
        </DropdownMenu.Content>
      </DropdownMenu.Portal>
    </DropdownMenu.Root>
  );
}
