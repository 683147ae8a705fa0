import { useSyncExternalStore } from "react";

export const PHONE = "(max-width: 640px)";
export const NARROW = "(max-width: 1023px)";

export function useMedia(query: string): boolean {
  return useSyncExternalStore(
    (listener) => {
      const media = window.matchMedia(query);
      media.addEventListener("change", listener);
      return () => media.removeEventListener("change", listener);
    },
    () => window.matchMedia(query).matches,
  );
}
