"""Which files of a tree are key data, a configuration or a request log, told by their names."""

from __future__ import annotations

import re
from dataclasses import dataclass

TABLE = re.compile(
    r"(?P<root>(?:.*/)?)(?P<key>[^/]{1,200})/step_?(?P<step>[0-9]{1,9})"
    r"(?:/(?:rank_?(?P<rank>[0-9]{1,9})?|(?:proc|pid)_?[0-9]{1,9}))?"
    r"(?:/micro_step_?(?P<micro_step>[0-9]{1,9}))?/(?P<file>[^/]{1,255})\.(?P<kind>npy|json)",
    re.IGNORECASE,
)
# verl's token-level difference: probabilities of rollout and trainer [batch, length], and which of them are real.
DIFFERENCE = re.compile(r"(?P<root>(?:.*/)?)(?P<key>prob_diff|prob_mask)_step_?(?P<step>[0-9]{1,9})\.(?P<kind>npy)", re.IGNORECASE)
DUMP_FILES = frozenset({"dump", "construct", "stack", "debug"})  # what a .json is called that belongs to a dump
DATA = "data"  # the folder that key data lie in
CONFIGURATION = re.compile(r"(?:.*/)?configurations\.json", re.IGNORECASE)
YAML = re.compile(r"(?:.*/)?[^/]+\.ya?ml", re.IGNORECASE)
LOG = re.compile(r"(?:.*/)?[^/]+\.(?:log|txt)", re.IGNORECASE)
REQUESTS = re.compile(r"(?:.*/)?(?:dispatch|update_actor)_log\.jsonl", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class TablePlace:
    """Numbers are -1 where there is no such folder."""

    root: str
    key: str
    step: int
    rank: int
    micro_step: int
    id: str | None  # of a .npy; None where the file holds all entries (.json)

    @property
    def folder(self) -> tuple[str, int, int, int]:
        return self.key, self.step, self.rank, self.micro_step


def table_place(path: str, *, beside_numbers: bool = False) -> TablePlace | None:
    """``data/<key>/step2/rank0/micro_step1/<key>.3.npy`` and its shorter forms, or None for a file that is no key data.

    Without a folder ``data`` the file has to be called like its key: other trees have steps and ranks, too. A key may be called ``dump``:
    its ``dump.json`` is key data where it lies in a micro-step, which no dump does, or ``beside_numbers`` of its own.
    """
    found = DIFFERENCE.fullmatch(path)
    if found:
        return TablePlace(found["root"], found["key"].lower(), int(found["step"]), -1, -1, "0")
    found = TABLE.fullmatch(path)
    if found is None:
        return None
    key, file, root = found["key"], found["file"], found["root"]
    if file.lower() in DUMP_FILES and (file != key or not (found["kind"].lower() == "npy" or found["micro_step"] or beside_numbers)):
        return None
    named = file == key or file.startswith((f"{key}.", f"{key}_"))
    in_data = root == f"{DATA}/" or root.endswith(f"/{DATA}/")
    if not named and not (in_data and found["kind"].lower() == "npy"):
        return None
    ranked = "/rank" in path[len(root) + len(key) :].lower()
    rank = int(found["rank"] or 0) if ranked else -1
    entry = None if found["kind"].lower() == "json" else _entry(file, key)
    micro_step = -1 if found["micro_step"] is None else int(found["micro_step"])
    return TablePlace(root.removesuffix(f"{DATA}/"), key, int(found["step"]), rank, micro_step, entry)


def _entry(file: str, key: str) -> str:
    """Which entry of a list or object the file holds."""
    rest = file.removeprefix(key)[1:] if file != key and file.startswith((f"{key}.", f"{key}_")) else ""
    if file == key:
        return "0"
    return rest or file


def is_configuration(path: str) -> bool:
    """Whether the file may say what the trainer was told; the content decides."""
    return any(pattern.fullmatch(path) for pattern in (CONFIGURATION, YAML, LOG))


def is_wanted(path: str) -> bool:
    """Whether the bytes of an archive's member may be wanted here."""
    return table_place(path) is not None or REQUESTS.fullmatch(path) is not None or is_configuration(path)
