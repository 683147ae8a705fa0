/** Words of the workbench. */
export const compare = {
  title: "Workbench",
};
