import type { options as optionsEn } from "./options.en";

/** 比对选项用语。 */
export const options: typeof optionsEn = {
  title: "选项",
  open: "选项……",
  chosen: (list) => `选项：${list}`,
  hint: "某一侧含有多个时，可指定比对哪一个。只选一侧时，两侧取相同的值。",
  places: { step: "step", rank: "rank", stage: "阶段" },
  of: (place, side) => `${side}：${place}`,
  all: "全部",
  same: "与另一侧相同",
  only: (value) => `${value}（仅此一个）`,
  none: "dump 中未标明",
  exact: "逐位比对",
  exactNote: "只要不相等就算差异，用于检查确定性",
  baseline: "基线",
  baselinePlaceholder: "某次运行的链接或编号",
  baselineNote: "左侧的另一份 dump。两份之间的差异被当作该侧自身的噪声。",
  baselineIs: (name) => `基线：${name}`,
  baselineLooking: "正在查找该运行",
  baselineUnknown: "这既不是运行的链接，也不是运行的编号。",
  again: "换选项重新比对",
  againNote: "对同样的两次运行开始一次新的比对，当前比对保持不变。",
};
