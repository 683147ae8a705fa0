/** The colour tokens a painter needs, read from the page's CSS variables: the style sheet stays the one place of colours. */
export interface Theme {
  readonly surface: string;
  readonly noise: string;
  readonly selection: string;
  readonly line: string;
  readonly line2: string;
  readonly text: string;
  readonly text2: string;
  readonly muted: string;
  readonly ctl: string;
  readonly train: string;
  readonly infer: string;
  readonly bad: string;
  readonly badTint: string;
  readonly good: string;
  readonly outline: string;
  /** Index 1 … 5; index 0 is unused. */
  readonly ramp: readonly string[];
  /** What is written on them. */
  readonly onRamp: readonly string[];
  readonly ground: string;
  readonly sunken: string;
  readonly ink: string;
  readonly font: string;
}

export function readTheme(root: Element): Theme {
  const style = getComputedStyle(root);
  const token = (name: string) => style.getPropertyValue(`--${name}`).trim();
  return {
    surface: token("surface"),
    noise: token("noise"),
    selection: token("selection"),
    line: token("line"),
    line2: token("line2"),
    text: token("text"),
    text2: token("text2"),
    muted: token("muted"),
    ctl: token("ctl"),
    train: token("train"),
    infer: token("infer"),
    bad: token("bad"),
    badTint: token("bad-tint"),
    good: token("good"),
    outline: token("ramp-outline"),
    ramp: ["", token("r1"), token("r2"), token("r3"), token("r4"), token("r5")],
    onRamp: [token("text"), token("on-r1"), token("on-r2"), token("on-r3"), token("on-r4"), token("on-r5")],
    ground: token("ground"),
    sunken: token("sunken"),
    ink: token("ink"),
    font: token("font"),
  };
}
