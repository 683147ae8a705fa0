import { describe, expect, it } from "vitest";
import { languageOf, preferences, setLanguage, setTheme } from "./preferences";

describe("a reader's choices", () => {
  it("begin with the first of the browser's languages that we speak", () => {
    expect(languageOf(["zh-TW", "en"])).toBe("zh");
    expect(languageOf(["de-DE", "zh-CN"])).toBe("zh");
    expect(languageOf(["fr"])).toBe("en");
  });

  it("are remembered and stand on the root", () => {
    setLanguage("zh");
    setTheme("dark");
    expect(localStorage.getItem("probe.language")).toBe("zh");
    expect(document.documentElement.lang).toBe("zh-CN");
    expect(document.documentElement.dataset.theme).toBe("dark");
    setTheme("system");
    expect(localStorage.getItem("probe.theme")).toBeNull();
    setLanguage("en");
    expect(preferences()).toMatchObject({ language: "en", themeChoice: "system" });
  });
});
