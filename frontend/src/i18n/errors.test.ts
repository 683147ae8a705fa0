import { readFileSync } from "node:fs";
import { resolve } from "node:path";
import { describe, expect, it } from "vitest";
import { RequestError, UNREACHABLE } from "../api/problem";
import { errorSentence, problemSentence } from "./errors";
import { errors as en } from "./messages/errors.en";
import { errors as zh } from "./messages/errors.zh";

/** The catalogue that every refusal of the server comes from: code → the placeholders of its two sentences. */
function serverCatalogue(): Map<string, Set<string>> {
  const source = readFileSync(resolve(process.cwd(), "../compare/engine/errors.py"), "utf-8");
  const table = /MESSAGES[^=]*= \{\n([\s\S]*?)\n\}/.exec(source)?.[1] ?? "";
  const found = new Map<string, Set<string>>();
  for (const [, code, body] of table.matchAll(/^ {4}"(\w+)": \(([\s\S]*?)\),?$/gm)) {
    if (code !== undefined) found.set(code, placeholders(body ?? ""));
  }
  return found;
}

function placeholders(text: string): Set<string> {
  return new Set([...text.matchAll(/\{(\w+)\}/g)].map(([, name]) => name ?? ""));
}

describe("refusals in the reader's language", () => {
  const server = serverCatalogue();

  it("are all translated", () => {
    expect(server.size).toBeGreaterThan(50);
    expect([...server.keys()].filter((code) => zh[code] === undefined)).toEqual([]);
  });

  it("use no placeholder that the server does not fill", () => {
    const unknown = [...server].flatMap(([code, known]) =>
      [...placeholders(zh[code] ?? "")].filter((name) => !known.has(name)).map((name) => `${code}.${name}`),
    );
    expect(unknown).toEqual([]);
  });

  it("of the page itself exist in both languages with the same placeholders", () => {
    for (const [code, sentence] of Object.entries(en)) expect([code, placeholders(zh[code] ?? "")]).toEqual([code, placeholders(sentence)]);
  });

  it("say the place, the numbers and what to do", () => {
    const problem = {
      code: "json_truncated",
      params: { offset: 1_048_576, record: "Module.a.forward.0" },
      message: "step0/dump.json: The file ends …",
      where: "step0/dump.json",
    };
    expect(problemSentence(problem, "zh")).toBe(
      "step0/dump.json：文件在第 1,048,576 字节处中断，最后一个完整条目是 Module.a.forward.0。任务被终止或复制不完整：请重新 dump，或重新复制文件",
    );
    expect(problemSentence(problem, "en")).toBe(problem.message);
  });

  it("fall back to the server's sentence for a code that is newer than the page", () => {
    expect(problemSentence({ code: "from_the_future", params: {}, message: "Something new." }, "zh")).toBe("Something new.");
  });

  it("are found in whatever a call threw", () => {
    expect(errorSentence(new TypeError("fetch failed"), "en")).toBe(en[UNREACHABLE.code]);
    expect(errorSentence(new RequestError(403, { code: "x", params: {}, message: "No." }), "en")).toBe("No.");
  });
});
