/**
 * Copying without a secure context: a plain host name on a local network has no `navigator.clipboard`. The older command works there as long
 * as a text field is selected; where that is refused as well, the caller shows a selected field.
 */
export async function copyText(text: string): Promise<boolean> {
  if (navigator.clipboard !== undefined && window.isSecureContext) {
    try {
      await navigator.clipboard.writeText(text);
      return true;
    } catch {
      // Permission refused: the older way may still be allowed.
    }
  }
  return copyByField(text);
}

function copyByField(text: string): boolean {
  const field = document.createElement("textarea");
  field.value = text;
  field.readOnly = true;
  field.className = "visually-hidden";
  const focused = document.activeElement;
  // Inside an open dialog, because the rest of the page is inert there and cannot be selected.
  (document.querySelector("dialog[open], [role=dialog]") ?? document.body).append(field);
  try {
    return copySelection(field);
  } finally {
    field.remove();
    if (focused instanceof HTMLElement) focused.focus();
  }
}

/** Selects a field and asks the browser to copy the selection; false where it will not, and the field stays selected. */
export function copySelection(field: HTMLInputElement | HTMLTextAreaElement): boolean {
  field.focus();
  field.select();
  try {
    return document.execCommand?.("copy") ?? false;
  } catch {
    return false;
  }
}
