"""Cuts a JSON object into its entries while it streams, without building the object.

Why not a JSON library: real dumps hold bare ``NaN`` and ``Infinity``, which every fast parser refuses as a whole file, and the parser that
takes them needs four times the file in memory. So numpy finds where entries begin and end, and each entry is decoded on its own.

How: quotes (escaped ones aside) tell what lies in strings; brackets outside strings give the depth; commas at the depth of interest part
the entries. All of it is carried over block edges, so memory is one block plus the entry that crosses its edge.
"""

from __future__ import annotations

import codecs
import json
import re
from collections.abc import Callable, Iterator
from enum import IntEnum
from typing import Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from compare.engine.errors import DumpError
from compare.engine.ingest.limits import BLOCK, DEEPEST_NESTING, LARGEST_ENTRY
from compare.engine.ingest.source import printable

QUOTE, COMMA = ord('"'), ord(",")
OPENING, CLOSING = ord("{"), ord("}")
OPENERS, CLOSERS = frozenset(b"{["), frozenset(b"}]")
STRUCTURAL: Final = bytes(letter in b'"{}[],' for letter in range(256))
DEPTH_CHANGE: Final = np.zeros(256, dtype=np.int8)
DEPTH_CHANGE[list(b"{[")] = 1
DEPTH_CHANGE[list(b"}]")] = -1

# The JSON grammar's own whitespace: \s would also take form feeds.
KEY: Final = re.compile(rb'[ \t\n\r]*"([^"\\]*(?:\\.[^"\\]*)*)"[ \t\n\r]*:[ \t\n\r]*', re.DOTALL)
WHITESPACE: Final = b" \t\n\r"
UTF8_MARK: Final = codecs.BOM_UTF8
OTHER_MARKS: Final = ((codecs.BOM_UTF32_LE, "UTF-32"), (codecs.BOM_UTF16_LE, "UTF-16"), (codecs.BOM_UTF16_BE, "UTF-16"))


class Entry(NamedTuple):
    """One ``key: value`` pair. ``inner`` says that it lies in the member that was opened; ``offset`` is where the value's bytes begin."""

    inner: bool
    key: str
    value: bytes
    offset: int


class Place(IntEnum):
    """Where the cut has come to."""

    BEFORE = 0  # the object has not begun
    MEMBERS = 1  # among its members
    NESTED = 2  # in a member's list or object that is not opened
    INNER = 3  # among the entries of the opened member
    CLOSED = 4  # behind the opened member, before the next comma
    AFTER = 5  # the object has ended


def split(read: Callable[[int], bytes], place: str, opened: str | None = None, block_size: int = BLOCK) -> Iterator[Entry]:
    """Yield the members of the JSON object that ``read`` streams, in file order.

    With ``opened``, the entries of that member are yielded one by one as ``inner`` (if it is an object), and then the member itself with
    the value ``b"{}"``. Values are not validated here; everything between them is. Equal keys are yielded as often as they occur.

    Raises DumpError at ``place``: not_json (also for JSON that is no object), json_truncated, not_utf8, too_deep, entry_too_large.
    """
    return _Splitter(read, place, opened, block_size).entries()


class _Splitter:
    def __init__(self, read: Callable[[int], bytes], place: str, opened: str | None, block_size: int) -> None:
        self.read = read
        self.place = place
        self.opened = opened
        self.block_size = block_size
        self.deepest_token = 1 if opened is None else 2
        self.offset = 0  # of the current block's first byte
        self.in_string = False
        self.escaped = False  # the block before ended in a backslash that escapes this block's first byte
        self.depth = 0
        self.decoder = codecs.getincrementaldecoder("utf-8")()
        self.characters_pending = False
        self.last_key: str | None = None

    def entries(self) -> Iterator[Entry]:
        block = self._first_block()
        pending = bytearray()  # the beginning of the entry that crosses into this block
        at = Place.BEFORE
        after_comma = False
        opened_at = 0
        while block:
            self._check_text(block)
            start = 0
            for position, letter in self._tokens(block):
                if at == Place.NESTED:
                    if letter in CLOSERS:
                        at = Place.MEMBERS
                    continue
                if pending:
                    text, begin, end, base = bytes(pending) + block[start:position], 0, len(pending) + position - start, self.offset - len(pending)
                else:
                    text, begin, end, base = block, start, position, self.offset
                if letter == COMMA:
                    if at == Place.INNER:
                        yield self._entry(True, text, begin, end, base)
                    elif at == Place.MEMBERS:
                        yield self._entry(False, text, begin, end, base)
                    else:
                        self._expect_nothing(text, begin, end, base)
                        if at != Place.CLOSED:
                            raise self._not_json(base + end, "a comma stands where it cannot")
                        at = Place.MEMBERS
                    after_comma = True
                elif letter in OPENERS:
                    if at == Place.BEFORE:
                        self._expect_nothing(text, begin, end, base)
                        if letter != OPENING:
                            raise self._not_json(base + end, "a list begins where an object was expected")
                        at = Place.MEMBERS
                    elif at == Place.MEMBERS:
                        if letter != OPENING or self._key(text, begin, end, base)[0] != self.opened:
                            at = Place.NESTED
                            continue
                        at, opened_at = Place.INNER, base + end
                    else:
                        raise self._not_json(base + end, "something follows the object" if at == Place.AFTER else "a comma is missing")
                    after_comma = False
                else:
                    if letter != CLOSING or at in (Place.BEFORE, Place.AFTER):
                        raise self._not_json(base + end, f"{chr(letter)} stands where it cannot")
                    if at == Place.CLOSED:
                        self._expect_nothing(text, begin, end, base)
                    elif after_comma or text[begin:end].strip(WHITESPACE):
                        yield self._entry(at == Place.INNER, text, begin, end, base)
                    if at == Place.INNER:
                        yield Entry(False, str(self.opened), b"{}", opened_at)
                        at = Place.CLOSED
                    else:
                        at = Place.AFTER
                    after_comma = False
                start = position + 1
                pending.clear()
            pending += memoryview(block)[start:]
            if at in (Place.BEFORE, Place.CLOSED, Place.AFTER):
                self._expect_nothing(pending, 0, len(pending), self.offset + len(block) - len(pending))
                pending.clear()
            if len(pending) > LARGEST_ENTRY:
                raise DumpError("entry_too_large", self.place, offset=self.offset + len(block) - len(pending), limit=LARGEST_ENTRY >> 20)
            self.offset += len(block)
            block = self.read(self.block_size)
        if at != Place.AFTER:
            raise DumpError("json_truncated", self.place, offset=self.offset, record=printable(self.last_key or "") or "–")

    def _first_block(self) -> bytes:
        """The first block without a byte-order mark; short reads are joined until a mark would show."""
        block = self.read(self.block_size)
        while 0 < len(block) < len(codecs.BOM_UTF32_LE):
            more = self.read(self.block_size)
            if not more:
                break
            block += more
        for mark, encoding in OTHER_MARKS:
            if block.startswith(mark):
                raise DumpError("not_utf8", self.place, offset=0, encoding=encoding)
        if block.startswith(b"\0") or block[1:2] == b"\0":
            raise DumpError("not_utf8", self.place, offset=0, encoding="UTF-16")
        if block.startswith(UTF8_MARK):
            self.offset = len(UTF8_MARK)
            block = block[len(UTF8_MARK) :] or self.read(self.block_size)
        return block

    def _check_text(self, block: bytes) -> None:
        if block.isascii() and not self.characters_pending:
            return
        held = len(self.decoder.getstate()[0])
        try:
            self.decoder.decode(block)
        except UnicodeDecodeError as error:
            raise DumpError("not_utf8", self.place, offset=self.offset - held + error.start, encoding="UTF-8 with a wrong byte") from error
        self.characters_pending = bool(self.decoder.getstate()[0])

    def _tokens(self, block: bytes) -> Iterator[tuple[int, int]]:
        """Position and letter of the commas, openings and closings outside strings that belong to the depths of interest."""
        flags: NDArray[np.bool_] = np.frombuffer(block.translate(STRUCTURAL), dtype=np.bool_)
        letters: NDArray[np.uint8] = np.frombuffer(block, dtype=np.uint8)
        if self.escaped or b"\\" in block:
            flags = flags.copy()
            self._drop_escaped(letters, flags)
        positions = np.flatnonzero(flags)
        found = letters[positions]
        quotes = found == QUOTE
        inside = np.bitwise_xor.accumulate(quotes)
        if self.in_string:
            np.logical_not(inside, out=inside)
        if len(inside):
            self.in_string = bool(inside[-1])
        outside = np.flatnonzero(~(inside | quotes))
        found = found[outside]
        change = DEPTH_CHANGE[found]
        depth = np.cumsum(change, dtype=np.int32)
        depth += self.depth
        if len(depth):
            self.depth = int(depth[-1])
            if int(depth.max()) > DEEPEST_NESTING:
                first = int(positions[outside[int(np.argmax(depth > DEEPEST_NESTING))]])
                raise DumpError("too_deep", self.place, offset=self.offset + first, limit=DEEPEST_NESTING)
        wanted = np.flatnonzero(depth + (change < 0) <= self.deepest_token)
        return zip(positions[outside[wanted]].tolist(), found[wanted].tolist(), strict=True)

    def _drop_escaped(self, letters: NDArray[np.uint8], flags: NDArray[np.bool_]) -> None:
        """Clear the flags of the bytes that a backslash escapes: those behind an odd run of backslashes."""
        backslashes = np.flatnonzero(letters == ord("\\"))
        if self.escaped:
            flags[0] = False
            if len(backslashes) and backslashes[0] == 0:
                backslashes = backslashes[1:]  # it is escaped itself, so it begins no run
        self.escaped = False
        if not len(backslashes):
            return
        ends = np.flatnonzero(np.append(np.diff(backslashes) != 1, True))
        lengths = np.diff(np.concatenate(([-1], ends)))
        behind = backslashes[ends[lengths % 2 == 1]] + 1
        if len(behind) and behind[-1] == len(flags):
            self.escaped = True
            behind = behind[:-1]
        flags[behind] = False

    def _entry(self, inner: bool, text: bytes, begin: int, end: int, base: int) -> Entry:  # noqa: FBT001  (called once an entry)
        key, value = self._key(text, begin, end, base)
        self.last_key = key
        return Entry(inner, key, text[value:end], base + value)

    def _key(self, text: bytes, begin: int, end: int, base: int) -> tuple[str, int]:
        """The key that ``text[begin:end]`` starts with, and where its value begins."""
        found = KEY.match(text, begin, end)
        if found is None:
            raise self._not_json(base + begin, 'a "name": value pair was expected')
        raw = found[1]
        if b"\\" not in raw:
            return raw.decode("utf-8"), found.end()
        try:
            return whole_characters(json.loads(b'"%s"' % raw)), found.end()
        except ValueError as error:
            raise self._not_json(base + found.start(1), "a name holds a wrong escape") from error

    def _expect_nothing(self, text: bytes | bytearray, begin: int, end: int, base: int) -> None:
        rest = text[begin:end]
        if rest.strip(WHITESPACE):
            raise self._not_json(base + begin + len(rest) - len(rest.lstrip(WHITESPACE)), "something stands where nothing can")

    def _not_json(self, offset: int, detail: str) -> DumpError:
        return DumpError("not_json", self.place, offset=offset, detail=detail)


def whole_characters(text: str) -> str:
    """The text with halves of surrogate pairs (``"\\ud800"``) replaced: they cannot be written as UTF-8 again."""
    return text if text.isascii() else text.encode("utf-8", "surrogatepass").decode("utf-8", "replace")
