"""Every refusal has a code, a place and a hint.

A code is part of the product's face: the browser translates it, the command line prints the English sentence, docs/errors.md lists it.
"""

from __future__ import annotations

import errno
from collections.abc import Mapping
from typing import Any

LONGEST_PRINTED_NAME = 300

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
    "lists_closed": (
        "Lists are open to the machine that runs this server only",
        "Open the link that the start-up printed, or send its key",
    ),
    "host_not_served": (
        "This server does not answer to the host name {host}",
        "Open the address that the start-up printed, or let the operator add the name to PROBE_HOST_NAMES",
    ),
    "foreign_origin": (
        "A page of another site ({origin}) sent this request",
        "Open the product's own page, or let the operator add that site to PROBE_TRUSTED_ORIGINS",
    ),
    "request_too_large": ("The request is larger than this address takes", "Send files through /api/v1/uploads/"),
    "too_many_files": ("A run holds at most {limit} files", "Send them as one archive"),
    "internal": ("The server failed to do this; the log knows it as {reference}", "Try again, and report that reference if it repeats"),
    # Uploads
    "tus_version": ("This server speaks tus {version}", "Send the header Tus-Resumable: {version}"),
    "upload_length_required": ("An upload starts with its length", "Send the header Upload-Length with the number of bytes"),
    "upload_metadata_malformed": (
        "The header Upload-Metadata cannot be read",
        "Send pairs of a key and a base64 value, separated by commas",
    ),
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
    "uploads_too_many": ("{limit} uploads are open already", "Wait until others are finished, or remove some"),
    "storage_full": (
        "Everything kept on the server together, dumps and results, may have at most {limit} bytes",
        "Delete comparisons and runs that nobody needs, or let the operator raise PROBE_STORED_MAX_BYTES",
    ),
    "upload_changed": ("The bytes that arrived are not those that were announced", "The file changed while it was sent: send it again"),
    "token_required": (
        "This server takes dumps from other machines only with a token or the start-up key",
        "Ask the person who runs this server for one; scripts send it as Authorization: Bearer",
    ),
    "token_invalid": ("The token is unknown, expired or revoked", "Ask the person who runs this server for a new one"),
    "unavailable": ("The server's database does not answer", "Try again in a moment; nothing that arrived is lost"),
    # Runs and comparisons
    "run_unknown": ("There is no run {run}", "It may have been deleted; upload the dump again"),
    "run_in_use": ("The run is used by {comparisons} comparisons", "Delete them first"),
    "run_failed": ("The run {name} could not be read: {why}", "Upload it again once that is mended"),
    "not_cancellable": ("A comparison that is {state} cannot be cancelled", "Only a queued or running one can"),
    "not_retryable": ("A comparison that is {state} cannot be tried again", "Only a failed, cancelled or interrupted one can"),
    "part_not_retryable": (
        "Part {n} is {state} and cannot be tried again now",
        "Only a part that failed can, and not while the verdict over the parts is being made: look again in a moment",
    ),
    "not_ready": ("The comparison has no verdict yet", "Wait until it is done"),
    "several_parts": ("The comparison has several parts", "Name one: parts/<n>/"),
    "part_unknown": ("There is no part {n} to look into", "See parts in the verdict for those that both sides hold"),
    "no_key_data": ("Neither run of this comparison holds key data", "Dump with key_data_dump: true, and send the whole folder"),
    "key_data_unknown": (
        "There is no table {t} of key {n}",
        "See key_data in the verdict for the keys, and key-data/<n>/ for their tables",
    ),
    "node_unknown": ("There is no row {n}", "See rows in the header of the tree"),
    "export_unknown": ("There is no export called {name}", "See the documentation of the API for those there are"),
    # Work
    "worker_lost": ("The worker stopped without a word", "Try again; if it repeats, look at the worker's log"),
    "worker_killed": (
        "The worker was killed, most likely because memory ran out",
        "Try again with fewer dumps at once or on a larger machine",
    ),
    "out_of_memory": ("Memory ran out", "Try again with fewer dumps at once or on a larger machine"),
    "time_limit": ("It took longer than the limit of {seconds} s", "Compare a single step or rank, or raise the limit"),
    # Comparing
    "option_unknown": ("There is no option {name}", "See the documentation for those there are"),
    "option_invalid": ("The option {name} cannot be {value}", "Give a number, or one for each side as LEFT:RIGHT"),
    "mapping_malformed": ("Line {line} cannot be read: {detail}", "Correct that line; docs/mapping.md shows the form"),
    "mapping_shape": ("Line {line} is no part of a mapping", "Write a list of pairs; docs/mapping.md shows the form"),
    "mapping_key": ("Line {line} says {key}, which means nothing there", "See docs/mapping.md for the words there are"),
    "mapping_value": ("Line {line}: {key} cannot be that", "See docs/mapping.md for what it may be"),
    "mapping_version": ("Line {line}: {found} is another form; this version reads {known}", "Export the mapping again"),
    "mapping_too_large": ("A mapping has at most {limit} MB", "Use N and * for what repeats"),
    "no_such_choice": ("The {name} {value} is not there", "Choose one of: {held}"),
    "cannot_write": ("Cannot write: {detail}", "Choose another place"),
    "stored_format": ("Stored in format {found}, this version reads {known}", "Upload the dump again"),
    # Reading dumps
    "file_missing": ("The file does not exist", "Check the path"),
    "file_forbidden": ("The file may not be read", "Give its reader permission"),
    "file_unreadable": ("The file cannot be read: {reason}", "Check the disk, or copy the file again"),
    "file_twice": ("Two files called {name} were given for one place", "Give each dump once; for several ranks, keep their folders"),
    "empty_side": ("There are no records here", "Give a dump that holds at least one forward call"),
    "no_dump": (
        "There is no dump.json in it",
        "Give a dump.json, a rank folder, a step folder, the whole dump folder, or an archive of one",
    ),
    "not_a_dump": ("This is JSON, but has no object called data, so it is no dump.json", "Give the dump.json that msprobe wrote"),
    "not_json": ("This is not valid JSON at byte {offset}: {detail}", "Dump again, or copy the file again"),
    "not_utf8": ("Byte {offset} is no UTF-8 text", "Dump again, or copy the file again"),
    "other_encoding": ("This is {encoding} text", "Give the file as msprobe wrote it, in UTF-8"),
    "file_empty": ("The file is empty", "Dump again, or copy the file again"),
    "json_truncated": (
        "The file ends at byte {offset} in the middle; the last complete entry is {record}",
        "The job was killed or the copy broke off: dump again, or copy the file again",
    ),
    "too_deep": ("Lists and objects are nested deeper than {limit} levels at byte {offset}", "No dumper writes this; check the file"),
    "entry_too_large": ("One entry, from byte {offset} on, is larger than {limit} MiB", "No dumper writes this; check the file"),
    "too_many_records": ("It holds more than {limit} records", "Dump fewer steps or layers at once"),
    "duplicate_key": ("{key} occurs twice, the second time at byte {offset}", "Dump again: which of the two is right cannot be known"),
    "bad_record": ("The record {record} at byte {offset} holds {detail}", "Dump again, or report the record"),
    "bad_construct": ("The entry {record} at byte {offset} names no parent", "Give the construct.json that msprobe wrote, or leave it out"),
    "bad_stack": ("The entry {record} at byte {offset} is no call stack", "Give the stack.json that msprobe wrote, or leave it out"),
    "level_unsupported": ("Dumps of level {level} are not read", "Dump with level L0, L1 or mix"),
    "rank_twice": (
        "Rank {rank} was given twice for the same step; the other is {other}",
        "Give every rank once a side: put the dump of the other run on the other side",
    ),
    "two_roots": (
        "There are two dump folders in one: {first} and {second}",
        "Give one of them, or the left side in one archive and the right side in another",
    ),
    "several_processes": (
        "Two processes of unknown rank for the same step; the other is {other}",
        "Name the folders rank0, rank1, …, or give one",
    ),
    "database_foreign": (
        "This is no database of msprobe graph_visualize: {detail}",
        "Give the .vis.db that it wrote, or the dumps themselves",
    ),
    "database_damaged": ("The database cannot be read: {detail}", "Copy it again, or give the dumps themselves"),
    "database_unfinished": (
        "The database was copied while it was still being written: a -wal file lies beside it",
        "Wait for graph_visualize to end, then copy it",
    ),
    "database_too_large": ("The database is larger than {limit} GiB", "Give the dumps themselves"),
    "archive_kind": ("{kind} archives are not read", "Pack it as zip, tar or tar.gz"),
    "archive_damaged": ("The archive cannot be read: {detail}", "Pack it again, or copy it again"),
    "archive_climbs": ("The name {name} would leave the archive's own folder", "Pack the folder with relative names and without links"),
    "archive_encrypted": ("It is encrypted", "Pack it without a password"),
    "archive_bomb": ("{packed} bytes would unpack to {size}", "Honest dumps do not shrink that much; check where it came from"),
    "archive_too_many": ("It holds more than {limit} files", "Leave the tensor files out: statistics are enough to start"),
    "archive_too_large": ("Its json files unpack to more than {limit} GiB", "Split it by step or rank"),
    "member_twice": ("It holds {member} twice", "Pack the folder again"),
    # Reading tensors
    "tensor_unknown": ("Its first bytes are those of no .pt and no .npy file", "Give the file as the dumper wrote it"),
    "tensor_legacy": (
        "It is in the format that torch.save wrote before torch 1.6, which only running it could read",
        "Load it with torch and save it again",
    ),
    "tensor_script": ("It is a TorchScript archive, a program and no tensor", "Give the tensor files that the dumper wrote"),
    "tensor_truncated": (
        "It breaks off after {size} bytes",
        "The job was killed or the copy broke off: dump again, or copy the file again",
    ),
    "tensor_damaged": ("It is damaged: {detail}", "Dump again, or copy the file again"),
    "tensor_checksum": ("The bytes of {record} do not match their checksum", "Dump again, or copy the file again"),
    "tensor_record_missing": ("It holds no {record}", "Dump again, or copy the file again"),
    "tensor_record_twice": ("It holds {record} twice", "Dump again, or copy the file again"),
    "tensor_instruction": (
        "Its data.pkl uses the pickle instruction {instruction} at byte {offset}, which no tensor needs; nothing was executed",
        "Save the tensor alone, with torch.save(tensor, file)",
    ),
    "tensor_name": (
        "Its data.pkl names {name} at byte {offset}, which is not known to make a tensor; nothing was executed",
        "Save the tensor alone, with torch.save(tensor, file)",
    ),
    "tensor_description": (
        "Its data.pkl describes no tensor at byte {offset}: {detail}",
        "Save the tensor alone, with torch.save(tensor, file)",
    ),
    "tensor_content": ("It holds {found}, not one tensor", "Save the tensor alone, with torch.save(tensor, file)"),
    "tensor_quantised": ("Quantised tensors are not read", "Save tensor.dequantize()"),
    "tensor_sparse": ("Sparse and nested tensors are not read", "Save tensor.to_dense(), or the parts"),
    "tensor_no_data": ("It describes a tensor without numbers, on the meta device or deferred", "Save it after its numbers were computed"),
    "tensor_dtype": ("Elements of type {dtype} are not read", "Save the tensor as float32"),
    "tensor_shape": (
        "No tensor has shape {shape}, strides {stride} and offset {offset}",
        "Dump again, or copy the file again",
    ),
    "tensor_bounds": (
        "Shape {shape}, strides {stride} and offset {offset} reach element {reach} of a storage of {held}",
        "Dump again, or copy the file again",
    ),
    "tensor_repeats": (
        "It repeats {held} stored elements until they are {elements}; at most {limit} are read",
        "Save the tensor before it is expanded",
    ),
    "tensor_storage": ("{record} should hold {expected} bytes and holds {held}", "Dump again, or copy the file again"),
    "tensor_other_size": (
        "It holds {elements} elements, where the dump says {expected}",
        "It was written by another call: dump again, or copy the files of one dump",
    ),
    "tensor_byte_order": ("It calls its byte order {order}", "Dump again, or copy the file again"),
    "tensor_too_large": ("It unpacks to more than {limit} GiB", "Give it unpacked"),
    "npy_header": ("Its .npy header is not one: {detail}", "Save the array with numpy.save"),
    "npy_objects": ("It holds Python objects, which only running them could read", "Save an array of numbers"),
}


OF_THE_MACHINE = frozenset({"disk_full", "file_forbidden", "file_missing", "file_unreadable"})


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

    @classmethod
    def of(cls, document: Mapping[str, Any]) -> DumpError:
        """The refusal that a ``document`` was made of."""
        return cls(document["code"], document["where"], **document["params"])

    @property
    def document(self) -> dict[str, Any]:
        return {"code": self.code, "params": self.params, "message": str(self), "where": self.where}

    @property
    def is_of_the_machine(self) -> bool:
        """Whether it says something about this machine rather than about the file."""
        return self.code in OF_THE_MACHINE

    def sentence(self) -> str:
        what, hint = MESSAGES[self.code]
        return f"{self.where}: {what.format(**self.params)}. {hint.format(**self.params)}"


def os_error(error: OSError, where: str) -> DumpError:
    """The refusal that an operating-system error stands for."""
    if isinstance(error, FileNotFoundError):
        return DumpError("file_missing", where)
    if isinstance(error, PermissionError):
        return DumpError("file_forbidden", where)
    if error.errno in (errno.ENOSPC, errno.EDQUOT):
        return DumpError("disk_full", where)
    return DumpError("file_unreadable", where, reason=error.strerror or type(error).__name__)


def printable(text: str) -> str:
    """A sender's name for a message: one line, no control characters, of bounded length, and always encodable."""
    shown = text[: LONGEST_PRINTED_NAME + 1]
    if not shown.isprintable():
        shown = "".join(letter if letter.isprintable() else "\ufffd" for letter in shown)
    return shown if len(text) <= LONGEST_PRINTED_NAME else shown[:LONGEST_PRINTED_NAME] + "…"


class Cancelled(Exception):
    """The reader asked to stop; nothing was published."""
