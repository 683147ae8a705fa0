import type { CompareMessages } from "./en";

export const compare: CompareMessages = {
  title: "工作台",
};
