import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { bytes, bytesOf, exact, factor, formatOf, number, percent, share, signed, signedPercent, ulps } from "./format";

const MINUS = "\u2212";
const SPACE = "\u00a0";
const en = formatOf("en");
const zh = formatOf("zh");

describe("numbers", () => {
  it("have four significant digits and a true minus", () => {
    expect([402, 21.375, -18.625, 0.0012049, 62.25, 538.36, 0].map(number)).toEqual([
      "402.0",
      "21.38",
      `${MINUS}18.63`,
      "0.001205",
      "62.25",
      "538.4",
      "0",
    ]);
  });

  it("show every digit before the point instead of zeros that nobody measured", () => {
    expect([1726, 12345, 999.96, 123456].map(number)).toEqual(["1726", "12345", "1000", "123456"]);
  });

  it("turn to powers of ten where a row of zeros would hide the size", () => {
    expect(number(1.419e-6)).toBe(`1.419e${MINUS}6`);
    expect(number(-65504000)).toBe(`${MINUS}6.550e7`);
  });

  it("name what no number can say", () => {
    expect([Number.NaN, "NaN", "Infinity", "-Infinity", null, undefined].map((value) => number(value as never))).toEqual([
      "NaN",
      "NaN",
      "Inf",
      `${MINUS}Inf`,
      "\u2013",
      "\u2013",
    ]);
  });

  it("carry a sign where they are differences, and none at zero", () => {
    expect([0.125, -1.5, 0, "Infinity" as const].map(signed)).toEqual(["+0.1250", `${MINUS}1.500`, "0", "+Inf"]);
  });

  it("lose nothing when asked exactly", () => {
    fc.assert(
      fc.property(fc.double({ noNaN: true, noDefaultInfinity: true }), (value) => {
        const read = Number(exact(value).replaceAll(MINUS, "-"));
        expect(read).toBe(value === 0 ? 0 : value);
      }),
    );
  });

  it("are never further off than half a unit of the fourth digit", () => {
    fc.assert(
      fc.property(fc.double({ min: 1e-30, max: 1e30, noNaN: true }), (value) => {
        const read = Number(number(value).replaceAll(MINUS, "-"));
        expect(Math.abs(read - value) / value).toBeLessThanOrEqual(0.000501);
      }),
    );
  });
});

describe("shares", () => {
  it("are percent with two places", () => {
    expect([0.0602, 0.0052, 0, 1.528, -0.0241].map(percent)).toEqual([
      `6.02${SPACE}%`,
      `0.52${SPACE}%`,
      `0.00${SPACE}%`,
      `152.8${SPACE}%`,
      `${MINUS}2.41${SPACE}%`,
    ]);
    expect(signedPercent(0.0058)).toBe(`+0.58${SPACE}%`);
  });

  it("never show zero for what is not zero", () => {
    expect(percent(1e-9)).toBe(`<${SPACE}0.01${SPACE}%`);
  });

  it("of progress reach 100 only at the end and leave 0 at the first byte", () => {
    expect([share(0, 10), share(1, 1e6), share(999_999, 1e6), share(1e6, 1e6), share(0, 0)]).toEqual(
      ["0", "1", "99", "100", "0"].map((text) => `${text}${SPACE}%`),
    );
  });
});

describe("steps and growth", () => {
  it("are whole and signed, or a factor", () => {
    expect([1, -10, 0, "NaN" as const].map(ulps)).toEqual(["+1", `${MINUS}10`, "0", "NaN"]);
    expect([10, 0.8, 29.4, null].map(factor)).toEqual(["×10", "×0.8", "×29", ""]);
  });
});

describe("bytes", () => {
  it("count in thousands, as disks do, and change the unit before they round to 1000", () => {
    expect([0, 999, 1000, 60_600_000, 999_960, 1.5e12].map(bytes)).toEqual(
      ["0 B", "999 B", "1.0 kB", "60.6 MB", "1.0 MB", "1.5 TB"].map((text) => text.replace(" ", SPACE)),
    );
  });

  it("share a unit where one is a part of the other", () => {
    expect(bytesOf(41_200_000, 60_600_000)).toEqual(["41.2", `60.6${SPACE}MB`]);
  });
});

describe("durations", () => {
  it("name at most two units", () => {
    expect([0.4, 2, 7.25, 59.6, 80, 3600, 11_100].map(en.duration)).toEqual([
      `400${SPACE}ms`,
      `2${SPACE}s`,
      `7.3${SPACE}s`,
      `1${SPACE}min`,
      `1${SPACE}min 20${SPACE}s`,
      `1${SPACE}h`,
      `3${SPACE}h 5${SPACE}min`,
    ]);
    expect(zh.duration(80)).toBe(`1${SPACE}分 20${SPACE}秒`);
  });
});

describe("moments", () => {
  const now = new Date(2026, 10, 30, 15, 0, 0);
  const before = (seconds: number) => new Date(now.getTime() - seconds * 1000);

  it("are told from now, and by date once that says more", () => {
    const at = [5, 12 * 60, 2 * 3600, 24 * 3600, 2.2 * 24 * 3600].map(before);
    expect(at.map((moment) => en.ago(moment, now))).toEqual(["now", "12 min ago", "2 h ago", "yesterday", "28 Nov"]);
    expect(at.map((moment) => zh.ago(moment, now))).toEqual(["刚刚", "12 分钟前", "2 小时前", "昨天", "11月28日"]);
  });

  it("name the year when it is another one", () => {
    expect(en.ago(new Date(2025, 9, 26), now)).toBe("26 Oct 2025");
  });
});
