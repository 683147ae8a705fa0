import { Fragment } from "react";

/** A name that may break after its underscores, dots and slashes. */
export function Breakable({ name }: { name: string }) {
  return name.split(/(?<=[_./])/).map((part, at) => (
    // biome-ignore lint/suspicious/noArrayIndexKey: the pieces of one name never move
    <Fragment key={at}>
      {part}
      <wbr />
    </Fragment>
  ));
}
