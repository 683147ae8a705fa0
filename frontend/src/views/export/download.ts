import { authorization } from "../../api/authorization";
import { problemOf, RequestError, UNREACHABLE } from "../../api/problem";
import { pollDelay } from "../../api/queries";
import type { Progress } from "../../api/types";

/** A file that a comparison can be taken away as. Reports have a language. */
export interface ExportFile {
  readonly name: string;
  readonly lang?: "en" | "zh";
}

export function exportAddress(slug: string, { name, lang }: ExportFile): string {
  return `/api/v1/comparisons/${encodeURIComponent(slug)}/${name}${lang === undefined ? "" : `?lang=${lang}`}`;
}

interface Waiting {
  readonly state: string;
  readonly progress: Progress;
}

/** Asks until the server has made the file. The bytes are left to the browser's own download: a table may be larger than a page should hold. */
export async function waitForExport(address: string, onWaiting: (progress: Progress) => void, signal: AbortSignal): Promise<void> {
  for (let answers = 0; ; answers += 1) {
    const response = await ask(address, signal);
    if (response.status === 202) {
      onWaiting(((await response.json()) as Waiting).progress);
      await pause(pollDelay(answers), signal);
      continue;
    }
    if (!response.ok) throw new RequestError(response.status, problemOf(response.status, await response.json().catch(() => undefined)));
    await response.body?.cancel();
    return;
  }
}

async function ask(address: string, signal: AbortSignal): Promise<Response> {
  const known = authorization();
  try {
    return await window.fetch(address, { signal, ...(known === null ? {} : { headers: { Authorization: known } }) });
  } catch (error) {
    if (signal.aborted) throw error;
    throw new RequestError(0, UNREACHABLE);
  }
}

function pause(milliseconds: number, signal: AbortSignal): Promise<void> {
  return new Promise((resolve, reject) => {
    const timer = window.setTimeout(resolve, milliseconds);
    signal.addEventListener("abort", () => {
      window.clearTimeout(timer);
      reject(signal.reason as Error);
    });
  });
}

/** Hands a file that is there to the browser, under the name that the server gives it. */
export function saveFile(address: string): void {
  const link = document.createElement("a");
  link.href = address;
  link.download = "";
  document.body.append(link);
  link.click();
  link.remove();
}
