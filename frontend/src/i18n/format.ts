import type { Language } from "../ui/preferences";

/**
 * Numbers, sizes and times as a reader sees them. Pure: the canvas and the HTML table use the same functions.
 * Four significant digits, a true minus (U+2212), a sign on differences, no grouping: 0.001205, 402.0, 1726, 1.419e−6.
 */
export type Figure = number | "NaN" | "Infinity" | "-Infinity" | null | undefined;

const MINUS = "\u2212";
const SPACE = "\u00a0";
const NOTHING = "\u2013";

/** JSON has no NaN or Inf, so the API writes them as words. NaN here also stands for "NaN"; null for "not written". */
export function figure(value: Figure): number | null {
  if (value === null || value === undefined) return null;
  return typeof value === "number" ? value : Number(value);
}

function special(value: number): string | null {
  if (Number.isNaN(value)) return "NaN";
  if (value === Number.POSITIVE_INFINITY) return "Inf";
  if (value === Number.NEGATIVE_INFINITY) return `${MINUS}Inf`;
  return null;
}

function magnitude(value: number): string {
  const size = Math.abs(value);
  if (size === 0) return "0";
  if (size < 1e-4 || size >= 999_999.5) return size.toExponential(3).replace("e+", "e").replace("e-", `e${MINUS}`);
  // Digits before the point are all shown: a rounded 12350 would claim zeros that are not there.
  if (size >= 999.95) return size.toFixed(0);
  return size.toPrecision(4);
}

function withSign(value: number, text: string): string {
  return value < 0 ? MINUS + text : text;
}

/** 402.0, −18.63, 0.001205, 1.419e−6, 0, NaN, −Inf; – where nothing was written. */
export function number(value: Figure): string {
  const plain = figure(value);
  if (plain === null) return NOTHING;
  return special(plain) ?? withSign(plain, magnitude(plain));
}

/** As number, with a sign on everything but 0: +0.1250, −1.500. */
export function signed(value: Figure): string {
  const plain = figure(value);
  if (plain === null) return NOTHING;
  if (plain === Number.POSITIVE_INFINITY) return "+Inf";
  return special(plain) ?? (plain > 0 ? `+${magnitude(plain)}` : withSign(plain, magnitude(plain)));
}

/** The same number with every digit that tells it from its neighbours, for hover and copy. */
export function exact(value: Figure): string {
  const plain = figure(value);
  if (plain === null) return NOTHING;
  return special(plain) ?? String(plain).replace("-", MINUS).replace("e-", `e${MINUS}`).replace("e+", "e");
}

function percentMagnitude(ratio: number): string {
  const size = Math.abs(ratio) * 100;
  if (size === 0) return `0.00${SPACE}%`;
  if (size < 0.005) return `<${SPACE}0.01${SPACE}%`;
  if (size < 99.995) return `${size.toFixed(2)}${SPACE}%`;
  if (size < 9999.5) return `${size.toFixed(size < 999.95 ? 1 : 0)}${SPACE}%`;
  return `${magnitude(size)}${SPACE}%`;
}

/** A ratio as percent: 0.0602 → 6.02 %. What is not 0 never reads 0.00 %. */
export function percent(ratio: Figure): string {
  const plain = figure(ratio);
  if (plain === null) return NOTHING;
  return special(plain) ?? withSign(plain, percentMagnitude(plain));
}

export function signedPercent(ratio: Figure): string {
  const plain = figure(ratio);
  if (plain === null) return NOTHING;
  return special(plain) ?? (plain > 0 ? `+${percentMagnitude(plain)}` : withSign(plain, percentMagnitude(plain)));
}

/** A share in whole percent, never 100 before it is all and never 0 after it began: for progress. */
export function share(part: number, whole: number): string {
  if (whole <= 0) return `0${SPACE}%`;
  const whole100 = Math.floor((part / whole) * 100);
  const shown = part >= whole ? 100 : Math.min(99, Math.max(part > 0 ? 1 : 0, whole100));
  return `${shown}${SPACE}%`;
}

/** Steps between two representable values: +1, −10, 0. */
export function ulps(value: Figure): string {
  const plain = figure(value);
  if (plain === null) return NOTHING;
  const named = special(plain);
  if (named !== null) return named;
  const size = Math.abs(plain);
  // Half a step and less is no step: +0 and −0 would name a direction that is not there.
  if (size < 0.5) return "0";
  const text = size >= 1e6 ? magnitude(size) : size.toFixed(0);
  return plain > 0 ? `+${text}` : withSign(plain, text);
}

/** Growth of a difference: ×10, ×0.8, ×2.1. */
export function factor(value: Figure): string {
  const plain = figure(value);
  if (plain === null || Number.isNaN(plain)) return "";
  if (!Number.isFinite(plain)) return "×Inf";
  if (plain >= 9.95) return `×${plain >= 1e6 ? magnitude(plain) : plain.toFixed(0)}`;
  return `×${plain.toFixed(1)}`;
}

const BYTE_UNITS = ["B", "kB", "MB", "GB", "TB"] as const;

function byteScale(count: number): number {
  // 999.95 and not 1000: what would round to 1000.0 kB is 1.0 MB.
  let scale = 0;
  while (scale < BYTE_UNITS.length - 1 && count >= 999.95 * 1000 ** scale) scale += 1;
  return scale;
}

function inScale(count: number, scale: number): string {
  return scale === 0 ? count.toFixed(0) : (count / 1000 ** scale).toFixed(1);
}

/** Decimal units, as disks and networks count: 60.6 MB. */
export function bytes(count: number): string {
  const scale = byteScale(count);
  return `${inScale(count, scale)}${SPACE}${BYTE_UNITS[scale]}`;
}

/** Two sizes in the unit of the second: ["41.2", "60.6 MB"]. */
export function bytesOf(part: number, whole: number): readonly [string, string] {
  return [inScale(part, byteScale(whole)), bytes(whole)];
}

const DURATION_WORDS = {
  en: { ms: `${SPACE}ms`, s: `${SPACE}s`, min: `${SPACE}min`, h: `${SPACE}h`, join: " " },
  zh: { ms: `${SPACE}毫秒`, s: `${SPACE}秒`, min: `${SPACE}分`, h: `${SPACE}小时`, join: " " },
} as const;

export interface Format {
  readonly language: Language;
  /** Counts, grouped as the language groups them: 100,000. */
  readonly count: (value: number) => string;
  /** Seconds in at most two units: 0.4 s, 12 s, 1 min 20 s, 3 h 5 min. */
  readonly duration: (seconds: number) => string;
  /** A moment seen from now: now, 12 min ago, 2 h ago, yesterday, 28 Nov. */
  readonly ago: (moment: Date, now: Date) => string;
  /** Date and time in full, for hover. */
  readonly moment: (moment: Date) => string;
  /** a, b and c; a、b、c. */
  readonly list: (items: readonly string[]) => string;
}

function createFormat(language: Language): Format {
  const locale = language === "zh" ? "zh-CN" : "en-GB";
  const words = DURATION_WORDS[language];
  const grouped = new Intl.NumberFormat(language === "zh" ? "zh-CN" : "en");
  const relative = new Intl.RelativeTimeFormat(locale, { numeric: "auto" });
  const dayMonth = new Intl.DateTimeFormat(locale, { day: "numeric", month: "short" });
  const dayMonthYear = new Intl.DateTimeFormat(locale, { day: "numeric", month: language === "zh" ? "numeric" : "short", year: "numeric" });
  const full = new Intl.DateTimeFormat(locale, { dateStyle: "medium", timeStyle: "medium" });
  const conjunction = new Intl.ListFormat(locale, { type: "conjunction" });
  // Intl joins two Chinese items with 和 and no space, which reads badly between Latin file names.
  const list = (items: readonly string[]): string => (language === "zh" ? items.join("、") : conjunction.format(items));

  const duration = (seconds: number): string => {
    if (!Number.isFinite(seconds) || seconds < 0) return NOTHING;
    if (seconds < 0.9995) return `${(seconds * 1000).toFixed(0)}${words.ms}`;
    if (seconds < 9.95) return `${seconds.toFixed(seconds < 9.95 && !Number.isInteger(seconds) ? 1 : 0)}${words.s}`;
    const whole = Math.round(seconds);
    if (whole < 60) return `${whole}${words.s}`;
    const [h, min, s] = [Math.floor(whole / 3600), Math.floor((whole % 3600) / 60), whole % 60];
    const parts = h > 0 ? [`${h}${words.h}`, min > 0 ? `${min}${words.min}` : ""] : [`${min}${words.min}`, s > 0 ? `${s}${words.s}` : ""];
    return parts.filter((part) => part !== "").join(words.join);
  };

  const ago = (moment: Date, now: Date): string => {
    const seconds = (now.getTime() - moment.getTime()) / 1000;
    if (seconds < 45) return language === "zh" ? "刚刚" : "now";
    const minutes = Math.round(seconds / 60);
    if (minutes < 60) return language === "zh" ? `${minutes} 分钟前` : `${minutes} min ago`;
    const days = Math.round((startOfDay(now) - startOfDay(moment)) / 86_400_000);
    if (days === 0 || seconds < 6 * 3600) {
      const hours = Math.round(seconds / 3600);
      return language === "zh" ? `${hours} 小时前` : `${hours} h ago`;
    }
    if (days === 1) return relative.format(-1, "day");
    return (moment.getFullYear() === now.getFullYear() ? dayMonth : dayMonthYear).format(moment);
  };

  return {
    language,
    count: (value) => grouped.format(value),
    duration,
    ago,
    moment: (moment) => full.format(moment),
    list,
  };
}

function startOfDay(moment: Date): number {
  return new Date(moment.getFullYear(), moment.getMonth(), moment.getDate()).getTime();
}

const FORMATS: Record<Language, Format> = { en: createFormat("en"), zh: createFormat("zh") };

export function formatOf(language: Language): Format {
  return FORMATS[language];
}
