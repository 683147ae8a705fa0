"""Every refusal has a code, a place and a hint.

A code is part of the product's face: the browser translates it, the command line prints the English sentence, docs/errors.md lists it.
"""

from __future__ import annotations

from typing import Any

# code → (what is wrong, what to do). {place} and the members of params may be used in both.
MESSAGES: dict[str, tuple[str, str]] = {
    # Requests
    "malformed": ("The request cannot be read: {detail}", "Send what the schema at /api/v1/schema/ describes"),
    "invalid": ("Some values are not allowed: {fields}", "Correct them and send again"),
    "not_found": ("There is nothing at this address", "The link may be mistyped, expired or deleted"),
    "method_not_allowed": ("{method} is not possible here", "See /api/v1/schema/ for what is"),
    "unsupported_media_type": ("Content of type {media_type} is not read here", "See /api/v1/schema/ for what is"),
    "not_acceptable": ("None of the formats asked for can be sent", "Ask for application/json"),
    "throttled": ("Too many requests", "Try again in {wait} s"),
    "not_authenticated": ("This needs a signed-in user or a key", "Sign in, or send the start-up key"),
    "forbidden": ("This is not allowed", "Ask the person who runs this server"),
    "lists_closed": ("Lists are open to the machine that runs this server only", "Open the link that the start-up printed, or send its key"),
    "request_too_large": ("The request is larger than this address takes", "Send files through /api/v1/uploads/"),
    "too_many_files": ("A run holds at most {limit} files", "Send them as one archive"),
    "internal": ("The server failed to do this; the log knows it as {reference}", "Try again, and report that reference if it repeats"),
    # Uploads
    "tus_version": ("This server speaks tus {version}", "Send the header Tus-Resumable: {version}"),
    "upload_length_required": ("An upload starts with its length", "Send the header Upload-Length with the number of bytes"),
    "upload_metadata_malformed": ("The header Upload-Metadata cannot be read", "Send pairs of a key and a base64 value, separated by commas"),
    "upload_too_large": ("A file may have at most {limit} bytes", "Leave out tensor files, or split the run by rank"),
    "upload_overflow": ("More bytes than the upload's {length} were sent", "Send the rest of the file and no more"),
    "uploads_full": ("All open uploads together may have at most {limit} bytes", "Wait until others are finished, or remove one"),
    "disk_full": ("The disk of the server is full", "Delete runs that nobody needs, or give the server a larger disk"),
    "offset_required": ("Where the bytes belong is not said", "Send the header Upload-Offset"),
    "offset_mismatch": ("The upload stands at byte {offset}", "Ask with HEAD and go on from there"),
    "upload_locked": ("Another request is writing this upload", "Try again in a moment"),
    "content_length_required": ("How many bytes follow is not said", "Send the header Content-Length"),
    "upload_cut": ("The connection ended after {received} of {expected} bytes; they are kept", "Ask with HEAD and go on from there"),
    "upload_incomplete": ("{name} has {offset} of {length} bytes", "Finish the upload first"),
    "upload_unknown": ("There is no upload {upload}", "It may have expired; send the file again"),
    "no_files": ("No file was sent", "Send at least one archive, dump.json or folder"),
    "paths_mismatch": ("{files} files came with {paths} paths", "Send one path a file, in the same order, or none"),
    "bad_name": ("A file name is empty, too long or holds a NUL", "Rename the file"),
    # Runs and comparisons
    "run_unknown": ("There is no run {run}", "It may have been deleted; upload the dump again"),
    "run_in_use": ("The run is used by {comparisons} comparisons", "Delete them first"),
    "run_failed": ("The run {name} could not be read", "Upload a complete dump"),
    "not_cancellable": ("A comparison that is {state} cannot be cancelled", "Only a queued or running one can"),
    "not_retryable": ("A comparison that is {state} cannot be tried again", "Only a failed, cancelled or interrupted one can"),
    "not_ready": ("The comparison has no verdict yet", "Wait until it is done"),
    "several_parts": ("The comparison has several parts", "Name one: parts/<n>/"),
    "part_unknown": ("There is no part {n} to look into", "See parts in the verdict for those that both sides hold"),
    "node_unknown": ("There is no row {n}", "See rows in the header of the tree"),
    "export_unknown": ("There is no export called {name}", "See the documentation of the API for those there are"),
    # Work
    "worker_lost": ("The worker stopped without a word", "Try again; if it repeats, look at the worker's log"),
    "worker_killed": ("The worker was killed, most likely because memory ran out", "Try again with fewer dumps at once or on a larger machine"),
    "out_of_memory": ("Memory ran out", "Try again with fewer dumps at once or on a larger machine"),
    "time_limit": ("It took longer than the limit of {seconds} s", "Compare a single step or rank, or raise the limit"),
}


class DumpError(Exception):
    """An input that cannot be read or compared.

    ``code`` is a key of MESSAGES, ``where`` the file (with member, record or byte offset) that the reader should look at, ``params`` what
    the sentence needs besides. ``str(error)`` is the English sentence: where, what, what to do, on one line.
    """

    def __init__(self, code: str, where: str, **params: Any) -> None:
        self.code = code
        self.where = where
        self.params = params
        super().__init__(self.sentence())

    def sentence(self) -> str:
        what, hint = MESSAGES[self.code]
        return f"{self.where}: {what.format(**self.params)}. {hint.format(**self.params)}"


class Cancelled(Exception):
    """The reader asked to stop; nothing was published."""
