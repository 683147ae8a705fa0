/** Refusals of the page's own. The server's come with their English sentence, which stays the only one. */
export const errors: Record<string, string> = {
  unreachable: "The server does not answer. Check that probe is running; this page goes on by itself when it does.",
  folder_unreadable: "The browser could not read what was dropped: {detail}. Drop it again, or choose the files instead.",
  folder_empty: "There is no file in the folder. Drop the folder that holds dump.json, or an archive of it.",
  nothing_to_send:
    "No dump.json, no archive, and no log with a configuration that verl printed, in {name} (files looked at: {files}). Drop the folder that msprobe wrote, a .zip, .tar or .tar.gz of it, or a dump.json.",
};
