import type { Inventory, Role, Run } from "../../api/types";
import { useI18n } from "../../i18n";
import { bytes } from "../../i18n/format";
import { Button } from "../../ui/button";
import { Digest, Fact, Noted, Structure, Unreadable } from "../../ui/facts";
import { InventoryFacts } from "../../ui/inventory-facts";
import { dataLine, extentLine, frameworkLine } from "../../ui/run-facts";
import type { Side } from "../../ui/side";
import { roleOf } from "../../ui/side-words";
import { type Contents, sides, swapSides } from "../../upload/side";
import type { HeldView } from "./RunCard";
import styles from "./side-panel.module.css";
import type { SideHolding } from "./use-side";

interface Props {
  side: Side;
  view: HeldView;
  run: Run | null;
  other: SideHolding;
  canSwap: boolean;
}

/** What the dump is: first what this page can see for itself, then what the server read. Rows keep their order, so nothing jumps. */
export function Preflight({ side, view, run, other, canSwap }: Props) {
  const inventory = run?.inventory ?? null;
  const about = view.about;
  return (
    <dl className={styles.facts}>
      {inventory === null ? (
        <LocalFacts about={about} />
      ) : (
        <ServerFacts side={side} inventory={inventory} sha256={run?.sha256 ?? ""} other={other} canSwap={canSwap} />
      )}
      {about === null ? null : <LogFacts about={about} />}
      {about === null ? null : <AsideFacts side={side} about={about} />}
    </dl>
  );
}

function LocalFacts({ about }: { about: Contents | null }) {
  const { t, format } = useI18n();
  if (about === null) return null;
  const seen = about.peek;
  return (
    <>
      {seen?.framework ? <Fact name={t.card.framework}>{frameworkLine(seen.framework, null, t)}</Fact> : null}
      {seen === null || dataLine(seen, t) === "" ? null : <Fact name={t.card.data}>{dataLine(seen, t)}</Fact>}
      {seen === null ? null : <Fact name={t.card.extent}>{extentLine(0, seen.steps, seen.ranks, t, format)}</Fact>}
      {seen === null ? null : (
        <Fact name={t.card.structure}>
          <Structure missing={[...(seen.construct ? [] : ["construct.json"]), ...(seen.stack ? [] : ["stack.json"])]} />
        </Fact>
      )}
      <Fact name={t.card.contents}>{t.card.files2(about.files, format.count(about.files), bytes(about.bytes))}</Fact>
    </>
  );
}

interface ServerFactsProps {
  side: Side;
  inventory: Inventory;
  sha256: string;
  other: SideHolding;
  canSwap: boolean;
}

function ServerFacts({ side, inventory, sha256, other, canSwap }: ServerFactsProps) {
  const { t } = useI18n();
  return (
    <>
      <Fact name={t.card.role}>
        <RoleLine side={side} inventory={inventory} other={other} />
        {canSwap ? (
          <>
            {" "}
            <Button look="link" onClick={() => swapSides(sides.left, sides.right)}>
              {t.card.swap}
            </Button>
          </>
        ) : null}
      </Fact>
      <InventoryFacts inventory={inventory} />
      <Digest digest={sha256 || inventory.digest} />
      <Unreadable dumps={inventory.unreadable} />
      <Noted notes={inventory.notes} />
      <ServerAside inventory={inventory} />
    </>
  );
}

function RoleLine({ side, inventory, other }: { side: Side; inventory: Inventory; other: SideHolding }) {
  const { t } = useI18n();
  const evidence = t.card.evidence[inventory.role_evidence];
  if (evidence === undefined || inventory.role === "unknown") return t.card.roleUnknown;
  const role = t.card.roleNames[inventory.role];
  const expected: Role = side === "left" ? "train" : "infer";
  // Against a run of the same role there is nothing to swap; while the other side is not read yet, nobody knows.
  const beside = other.run === null ? null : roleOf(other.run);
  const unread = other.view.phase !== "empty" && other.view.phase !== "lost" && beside === null;
  if (inventory.role === expected || unread || beside === inventory.role) return t.card.roleGuessed(role, evidence);
  return <strong className={styles.mismatch}>{t.card.roleMismatch(role, evidence)}</strong>;
}

/** What the server found in the upload and did not read. */
function ServerAside({ inventory }: { inventory: Inventory }) {
  const { t, format } = useI18n();
  const aside = inventory.left_aside;
  if (aside.length === 0) return null;
  return (
    <Fact name={t.card.leftAside}>
      <details>
        <summary>{t.card.asideFiles(aside.length, format.count(aside.length))}</summary>
        <ul className={styles.asideList}>
          {aside.slice(0, 200).map(({ path, reason }) => (
            <li key={path}>
              <code>{path}</code> {t.card.asideReasons[reason] ?? reason}
            </li>
          ))}
        </ul>
      </details>
    </Fact>
  );
}

/** Which logs hold a configuration, and what of them is sent. */
function LogFacts({ about }: { about: Contents }) {
  const { t } = useI18n();
  if (about.logs.length === 0) return null;
  return (
    <Fact name={t.card.fromLogs}>
      <ul>
        {about.logs.map(({ path, size, sent }) => (
          <li key={path}>
            <code>{path}</code> {sent < size ? t.card.logPart(bytes(sent), bytes(size)) : t.card.logWhole(bytes(size))}
          </li>
        ))}
      </ul>
    </Fact>
  );
}

/** What this page did not send. */
function AsideFacts({ side, about }: { side: Side; about: Contents }) {
  const { t, format } = useI18n();
  const { tensors, other, unread } = about;
  const parts = [
    tensors.count > 0 ? t.card.asideTensors(tensors.count, format.count(tensors.count), bytes(tensors.bytes)) : null,
    other.length > 0 ? t.card.asideOther(other.length, format.count(other.length)) : null,
    unread.length > 0 ? t.card.asideUnread(unread.length, format.count(unread.length)) : null,
  ].filter((part) => part !== null);
  if (parts.length === 0) return null;
  const canSend = tensors.count > 0 && sides[side].held().length > 0;
  return (
    <Fact name={t.card.notSent}>
      {parts.join(t.common.comma)}{" "}
      {canSend ? (
        <Button look="link" title={t.card.sendTensorsHint} onClick={() => void sides[side].sendTensors()}>
          {t.card.sendTensors}
        </Button>
      ) : null}
    </Fact>
  );
}
