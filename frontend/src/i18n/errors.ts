import { asRequestError } from "../api/problem";
import type { ApiProblem } from "../api/types";
import type { Language } from "../ui/preferences";
import { errors as en } from "./messages/errors.en";
import { errors as zh } from "./messages/errors.zh";

/** `{place}` and the members of a problem's params may stand in a sentence, as in the server's own catalogue. */
const CATALOGUES: Record<Language, Record<string, string>> = { en, zh };

function textOf(value: unknown): string {
  if (typeof value === "string") return value;
  if (typeof value === "number") return new Intl.NumberFormat("en").format(value);
  return value === undefined || value === null ? "" : JSON.stringify(value);
}

function fill(sentence: string, params: ApiProblem["params"]): string {
  return sentence.replace(/\{(\w+)\}/g, (_, name: string) => textOf(params[name]));
}

/** A refusal in the reader's language, with file and place; a code that this page does not know falls back to the server's own sentence. */
export function problemSentence(problem: ApiProblem, language: Language): string {
  const sentence = CATALOGUES[language][problem.code];
  if (sentence === undefined) return problem.message;
  const said = fill(sentence, problem.params);
  const where = problem.where ?? "";
  if (where === "" || said.includes(where)) return said;
  return language === "zh" ? `${where}：${said}` : `${where}: ${said}`;
}

/** The same for whatever a call threw. */
export function errorSentence(error: unknown, language: Language): string {
  return problemSentence(asRequestError(error).problem, language);
}
