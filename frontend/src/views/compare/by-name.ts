import type { LayerRow, Num, PartVerdict } from "../../api/types";
import { figure } from "../../i18n/format";

/** What pairing a layer's output by name would have compared: shown struck through beside what was compared. */
export interface ByName {
  readonly norm: Num | null;
  readonly norm_rel: Num | null;
  readonly slot: string;
}

/** What the engine worked out beside the layer; null where the output was where its name says. */
export function byName(layer: LayerRow): ByName | null {
  return layer.by_name ?? null;
}

/** The layer that pairing by name misjudges most; without such numbers the last one, whose norm the walkthroughs trip over. */
export function tellingLayer(verdict: PartVerdict): number | null {
  if (verdict.verdict !== "consistent" && verdict.verdict !== "identical") return null;
  if (!verdict.findings.some(({ code }) => code === "residual_pair_output")) return null;
  let telling = verdict.layers.at(-1)?.index ?? null;
  let most = Number.NEGATIVE_INFINITY;
  for (const layer of verdict.layers) {
    const size = figure(byName(layer)?.norm_rel);
    if (size !== null && Math.abs(size) > most) {
      most = Math.abs(size);
      telling = layer.index;
    }
  }
  return telling;
}
