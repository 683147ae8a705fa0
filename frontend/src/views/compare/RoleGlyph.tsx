import { ROLE } from "../../model/rows";
import styles from "./role-glyph.module.css";

export type RoleName = "origin" | "inherited" | "amplified" | "healed" | "unmatched" | "nodata" | "notcomparable";

const NAMES: Partial<Record<number, RoleName>> = {
  [ROLE.origin]: "origin",
  [ROLE.inherited]: "inherited",
  [ROLE.amplified]: "amplified",
  [ROLE.healed]: "healed",
  [ROLE.leftOnly]: "unmatched",
  [ROLE.rightOnly]: "unmatched",
  [ROLE.noData]: "nodata",
  [ROLE.notComparable]: "notcomparable",
};

export function roleName(role: number): RoleName | null {
  return NAMES[role] ?? null;
}

/** The sign of a role. Shape tells them apart; colour repeats it. The words stand beside it or in its row's name. */
export function RoleGlyph({ name, size = 14 }: { name: RoleName; size?: number }) {
  return (
    <svg className={`${styles.glyph} ${styles[name]}`} width={size} height={size} viewBox="0 0 14 14" fill="none" aria-hidden="true">
      {SHAPES[name]}
    </svg>
  );
}

const SHAPES: Record<RoleName, React.ReactNode> = {
  origin: <path d="M7 1.8 13 12H1Z" fill="currentcolor" />,
  inherited: <path d="M7 3.2 11.6 11.3H2.4Z" stroke="currentcolor" strokeWidth="1.3" />,
  amplified: <path d="M4 12V3M1.8 5.4 4 3l2.2 2.4M10 12V3M7.8 5.4 10 3l2.2 2.4" stroke="currentcolor" strokeWidth="1.4" />,
  healed: <path d="m2 7.4 3.3 3.4L12 3.4" stroke="currentcolor" strokeWidth="1.7" />,
  unmatched: (
    <>
      <rect x="1.5" y="1.5" width="11" height="11" stroke="currentcolor" />
      <path d="M1.5 8 8 1.5M1.5 12.5l11-11M6 12.5 12.5 6" stroke="currentcolor" />
    </>
  ),
  nodata: (
    <>
      <circle cx="7" cy="7" r="4.6" stroke="currentcolor" strokeWidth="1.1" />
      <path d="m3.8 10.2 6.4-6.4" stroke="currentcolor" strokeWidth="1.1" />
    </>
  ),
  notcomparable: <path d="M1.8 5.6q2.6-2.6 5.2-.6t5.2-.6M1.8 9.8q2.6-2.6 5.2-.6t5.2-.6" stroke="currentcolor" strokeWidth="1.3" />,
};
