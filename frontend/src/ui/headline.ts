import type { Comparison, ComparisonRow } from "../api/types";
import type { Language } from "./preferences";

/** `First divergence: layers.2 · mlp.down_proj — weights differ` → where, which stands out, and what. The verdict document puts the dash. */
export function splitHeadline(headline: string): readonly [where: string, what: string] {
  const dash = headline.indexOf(" \u2014 ");
  return dash < 0 ? ["", headline] : [headline.slice(0, dash), headline.slice(dash)];
}

/** A shipped example is named in both languages: `English | 中文`. */
export function comparisonName({ name, example }: Pick<Comparison | ComparisonRow, "name" | "example">, language: Language): string {
  if (example === "") return name;
  const [en, zh] = name.split(" | ");
  return (language === "zh" ? zh : en) ?? name;
}
