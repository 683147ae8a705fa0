import { useSyncExternalStore } from "react";
import { authorization, keepAuthorization, listenToAuthorization } from "./authorization";
import { client, unwrap } from "./client";
import type { About } from "./types";

/** What a person shows a server that asks who sends: a token, or the start-up key. */

export function useSenderIsKept(): boolean {
  return useSyncExternalStore(listenToAuthorization, () => authorization() !== null);
}

/** Asks the server whether it knows the secret, as a token and as the key; keeps it where it does, and says so. */
export async function showSecret(secret: string): Promise<boolean> {
  for (const kind of ["Bearer", "Key"] as const) {
    const value = `${kind} ${secret.trim()}`;
    if (!isHeader(value)) break;
    const about = await unwrap<About>(client.GET("/api/v1/about/", { headers: { Authorization: value } }));
    if (about.may_send) {
      keepAuthorization(value);
      return true;
    }
  }
  return false;
}

export function forgetSecret(): void {
  keepAuthorization(null);
}

/** A header holds printable ASCII and nothing else; no token of ours has more. */
function isHeader(value: string): boolean {
  return /^[\x21-\x7e]+ [\x21-\x7e]+$/.test(value);
}
