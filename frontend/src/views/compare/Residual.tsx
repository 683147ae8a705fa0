import type { NodeDetail, NodeSlot } from "../../api/types";
import { useI18n } from "../../i18n";
import { figure, number } from "../../i18n/format";
import { SideMark } from "../../ui/side";
import styles from "./residual.module.css";
import { splitPath } from "./words";

/** The slot of a layer's output whose partner is a sum in another module: the residual stream. */
export function residualSlot(node: NodeDetail): NodeSlot | null {
  const slots = node.slots.filter((slot) => slot.elsewhere && slot.reason?.code === "residual_stream");
  return slots.find((slot) => slot.group === "output") ?? slots[0] ?? null;
}

export function shortRecord(record: string): string {
  const plain = record
    .replace(/^Module\./, "")
    .replace(/_fsdp_wrapped_module\.|_orig_mod\.|_checkpoint_wrapped_module\./g, "")
    .replace(/\.(forward|backward)\.\d+$/, "");
  const layered = /(layers\.\d+.*)$/.exec(plain);
  const path = layered?.[1] ?? plain;
  // The class is the last component with a capital letter; the path reads better without it.
  const [before, last] = splitPath(path);
  return /^[A-Z]/.test(last) && before !== "" ? before.slice(0, -1) : path;
}

/** Which two tensors were compared, in words: left slot, right slot, and why those two. */
export function ResidualRelation({ title, slots }: { title: string; slots: readonly NodeSlot[] }) {
  const { language } = useI18n();
  return (
    <section className={styles.relation}>
      <h3>{title}</h3>
      {slots.map((slot) => (
        <div key={`${slot.group}-${slot.slot}-${slot.order}`} className={styles.pair}>
          <ul>
            {(["left", "right"] as const).flatMap((side) =>
              slot[side].map((place) => (
                <li key={`${side}-${place.record}-${place.slot}`}>
                  <SideMark side={side} />
                  <code title={`${place.record} ${place.slot}`}>
                    {shortRecord(place.record)} {place.slot}
                  </code>
                </li>
              )),
            )}
          </ul>
          {slot.reason === null ? null : <p>{slot.reason.text[language]}</p>}
        </div>
      ))}
    </section>
  );
}

/**
 * The small picture of residual pairing: training adds inside the layer and returns the sum, inference returns the two parts and the next
 * norm adds them; the sums are what is compared.
 */
export function ResidualPicture({
  node,
  slot,
  sides,
}: {
  node: NodeDetail;
  slot: NodeSlot;
  sides: { readonly left: string; readonly right: string };
}) {
  const { t } = useI18n();
  const words = t.compare.residual;
  // The side whose tensor lives in another module is the one that adds later; the drawing puts it below.
  const lateRight = slot.right.some((place) => !node.right.some((record) => record.name === place.record));
  const [early, late] = lateRight ? (["left", "right"] as const) : (["right", "left"] as const);
  const layer = splitPath((node.module ?? "").replace(/\.(\d+)$/, "/$1"));
  const name = `layers.${layer[1]}`;
  const place = slot[late][0];
  const adder = place === undefined ? "norm" : shortRecord(place.record);
  const norm = slot.statistics.find((statistic) => statistic.name === "norm");
  const value = (side: "left" | "right") =>
    norm === undefined || typeof norm[side] === "string" ? "" : number(figure(norm[side] as number));
  const part = (which: string) => {
    const found = node.slots.find((own) => own.slot === which && !own.elsewhere && own[late].length > 0);
    const statistic = found?.statistics.find((own) => own.name === "norm");
    return statistic === undefined ? "" : ` ${number(statistic[late] as number)}`;
  };
  return (
    <figure className={styles.figure}>
      <svg viewBox="-8 0 624 168" role="img" aria-label={words.label} className={styles.picture}>
        <text x="-8" y="36" className={early === "left" ? styles.train : styles.infer}>
          {sides[early]}
        </text>
        <text x="-8" y="128" className={late === "left" ? styles.train : styles.infer}>
          {sides[late]}
        </text>

        <g className={early === "left" ? styles.strokeTrain : styles.strokeInfer}>
          <rect x="66" y="8" width="214" height="62" rx="3" className={early === "left" ? styles.fillTrain : styles.fillInfer} />
          <path d="M76 50H118" markerEnd="url(#arrow)" />
          <path d="M92 50V30H240V41" />
          <rect x="120" y="38" width="64" height="24" rx="3" className={styles.box} />
          <path d="M184 50H231" markerEnd="url(#arrow)" />
          <circle cx="240" cy="50" r="8" className={styles.box} />
          <path d="M236 50h8m-4-4v8" />
          <path d="M248 50H581" className={styles.thick} />
        </g>
        <g className={late === "left" ? styles.strokeTrain : styles.strokeInfer}>
          <rect x="66" y="100" width="214" height="62" rx="3" className={late === "left" ? styles.fillTrain : styles.fillInfer} />
          <path d="M76 142H118" markerEnd="url(#arrow)" />
          <path d="M92 142V122H452V133" />
          <rect x="120" y="130" width="64" height="24" rx="3" className={styles.box} />
          <path d="M184 142H443" />
          <rect x="424" y="104" width="64" height="58" rx="3" className={styles.dashed} />
          <circle cx="452" cy="142" r="8" className={styles.box} />
          <path d="M448 142h8m-4-4v8" />
          <path d="M460 142H581" className={styles.thick} />
        </g>
        <g className={styles.small}>
          <text x="73" y="22">
            {name}
          </text>
          <text x="73" y="114">
            {name}
          </text>
          <text x="160" y="26">
            {words.residual}
          </text>
          <text x="152" y="54" textAnchor="middle">
            {words.mlp}
          </text>
          <text x="152" y="146" textAnchor="middle">
            {words.mlp}
          </text>
          <text x="290" y="42">
            {words.outputSum} <tspan className={styles.strong}>{value(early)}</tspan>
          </text>
          <text x="288" y="115">
            {words.stream("output.1")}
            {part("output.1")}
          </text>
          <text x="288" y="158">
            {words.branch("output.0")}
            {part("output.0")}
          </text>
          <text x="452" y="97" textAnchor="middle" className={styles.adder}>
            <title>{adder}</title>
            {adder.length > 16 ? splitPath(adder)[1] : adder}
          </text>
          <text x="496" y="158">
            {words.sum} <tspan className={styles.strong}>{value(late)}</tspan>
          </text>
        </g>
        <g className={styles.meet}>
          <path d="M581 50V142" />
          <circle cx="581" cy="50" r="3.5" />
          <circle cx="581" cy="142" r="3.5" />
          <rect x="506" y="80" width="108" height="23" rx="11.5" />
          <text x="560" y="96" textAnchor="middle">
            {words.here}
          </text>
        </g>
        <defs>
          <marker id="arrow" viewBox="0 0 8 8" refX="7" refY="4" markerWidth="7" markerHeight="7" orient="auto">
            <path d="M0 1 7 4 0 7Z" className={styles.arrow} />
          </marker>
        </defs>
      </svg>
      <figcaption>{words.text}</figcaption>
    </figure>
  );
}
