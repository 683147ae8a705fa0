/** `1 part`, `2 parts`, from a count that is text already. For English alone: Chinese has one form. */
export function counted(text: string, one: string, more = `${one}s`): string {
  return `${text} ${text === "1" ? one : more}`;
}

/** The verb of so many: `1 … differs`, `2 … differ`. */
export function verb(text: string, one: string, more: string): string {
  return text === "1" ? one : more;
}
