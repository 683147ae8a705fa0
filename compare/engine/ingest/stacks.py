"""Call stacks: both forms of stack.json, each distinct stack kept once."""

from __future__ import annotations

from collections.abc import Callable
from itertools import chain

import msgspec
import numpy as np

from compare.engine.errors import DumpError, printable
from compare.engine.ingest.columns import Interned
from compare.engine.ingest.limits import BLOCK
from compare.engine.ingest.notes import Notes
from compare.engine.ingest.splitter import split
from compare.engine.model import Int32

SEPARATOR = "\x1e"

decode_shared = msgspec.json.Decoder(tuple[list[str], list[str]]).decode
decode_frames = msgspec.json.Decoder(list[str] | None).decode


def read_stacks(
    read: Callable[[int], bytes], place: str, rows: dict[str, int], count: int, notes: Notes, block_size: int = BLOCK
) -> tuple[Int32, list[str]]:
    """The stack of every one of ``count`` rows (-1 = none), and the distinct stacks, frames joined by ``"\\x1e"``, innermost first.

    Old form: ``{record: frames}``. Shared form: ``{"0": [records, frames]}``.
    Records that are not there are noted. Raises DumpError: what ``splitter.split`` raises; bad_stack.
    """
    stacks: Interned[str] = Interned()
    column = np.full(count, -1, dtype=np.int32)
    for key, value, offset in chain.from_iterable(split(read, place, None, block_size)):
        try:
            if key.isdigit():
                names, frames = decode_shared(value)
            else:
                names, frames = [key], decode_frames(value) or []
        except (msgspec.DecodeError, UnicodeDecodeError) as error:
            raise DumpError("bad_stack", place, record=printable(key), offset=offset) from error
        known = [row for row in map(rows.get, names) if row is not None]
        if len(known) < len(names):
            for name in names:
                if name not in rows:
                    notes.not_in_dump(name)
        if known and frames:
            column[known] = stacks[SEPARATOR.join(frames)]
    return column, list(stacks)
