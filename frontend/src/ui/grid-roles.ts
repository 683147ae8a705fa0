/**
 * Roles of a grid whose rows and cells are on the page only in sight: they cannot be the elements of a table, so each says where it stands
 * among all of them. Indices are from 1 and count the header.
 */
export const rowGroup = { role: "rowgroup" } as const;
export const gridRow = (index: number, selected?: boolean) => ({ role: "row", "aria-rowindex": index, "aria-selected": selected }) as const;
export const gridCell = (role: "gridcell" | "columnheader" | "rowheader", index?: number) => ({ role, "aria-colindex": index }) as const;
