import { counted } from "./counted";

/** Words of the export menu, and of mapping by hand. Counts come with their text already formatted. */

function many(count: number, text: string, one: string, more: string): string {
  return `${text} ${count === 1 ? one : more}`;
}

export const exports = {
  open: "Export",
  title: "Export",
  notDone: "Reports and tables are made once the comparison is done.",
  report: "Report",
  table: "Table of pairs",
  mapping: "Mapping",
  verdict: "Verdict",
  languages: { en: "English", zh: "中文" },
  files: {
    "report.html": "HTML page",
    "report.md": "Markdown",
    "table.csv": "CSV",
    "table.xlsx": "Excel",
    "keydata.xlsx": "Key data, Excel",
    "mapping.yaml": "YAML",
    "mapping.csv": "CSV",
    "verdict.json": "JSON document",
  } as Record<string, string>,
  making: "being made …",
  makingRows: (rows: string) => `being made, ${counted(rows, "row")}`,
  ready: "downloaded",
  saved: (name: string) => `${name} downloaded`,
  failed: (sentence: string) => `Not made: ${sentence}`,
};

export const mapping = {
  title: "Mapping",
  hint: "Rules for which module is compared with which: the YAML or CSV that a comparison exports, or msprobe's layer, cell or data mapping.",
  text: "Text of the mapping file",
  choose: "Choose a file",
  clear: "Leave out",
  used: (lines: string) => `A mapping of ${lines} lines is used.`,
  tooLarge: "This file is too large to be a mapping.",
  open: "Use a mapping",
  previous: "Comparison before",

  match: "Match by hand",
  begin: "Match …",
  beginHint: "Choose the partner of this row",
  choosePartner: (name: string) => `Choose the partner of ${name} in the tree. A row of the other side, or one that has both.`,
  noRow: "Only modules can be matched by hand, no single calls.",
  notBoth: "One of the two must stand on the left side, the other on the right.",
  pair: (left: string, right: string) => `${left} ↔ ${right}`,
  unmatch: "Unmatch",
  unmatchLine: (name: string) => `${name} has no partner`,
  descendants: "with all that is below",
  preview: (made: number, madeText: string, apart: number, apartText: string) =>
    `Here ${many(made, madeText, "row meets a partner", "rows meet a partner")} and ${many(apart, apartText, "pair comes", "pairs come")} apart; other calls and directions likewise.`,
  previewApart: (apart: number, text: string) =>
    `Here ${many(apart, text, "pair comes", "pairs come")} apart; other calls and directions likewise.`,
  previewNothing: "Nothing changes: these two are a pair already.",
  apply: "Compare again",
  applying: "Starting …",
  cancel: "Cancel",
  applyHint: "Begins a new comparison of the same two runs with this rule added. This one stays.",
  failed: (sentence: string) => `Not started: ${sentence}`,
};
