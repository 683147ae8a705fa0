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
from typing import Final, TypeAlias

import numpy as np
from numpy.typing import NDArray

from compare.engine.errors import DumpError, printable
from compare.engine.ingest.limits import BLOCK, DEEPEST_NESTING, LARGEST_ENTRY

BACKSLASH, COMMA, OPENING, CLOSING, QUOTE = b'\\,{}"'
OPENERS, CLOSERS = frozenset(b"{["), frozenset(b"}]")
LOWER: Final = 0x20  # the bit that turns "[" into "{" and "]" into "}"
DEPTH_CHANGE: Final = np.zeros(256, dtype=np.int8)
DEPTH_CHANGE[list(b"{[")] = 1
DEPTH_CHANGE[list(b"}]")] = -1

# The JSON grammar's own whitespace: \s would also take form feeds.
KEY: Final = re.compile(rb'[ \t\n\r]*+"([^"\\]*+(?:\\.[^"\\]*+)*+)"[ \t\n\r]*+:[ \t\n\r]*+', re.DOTALL)
HALF_CHARACTER: Final = re.compile("[\ud800-\udfff]")
WHITESPACE: Final = b" \t\n\r"
UTF8_MARK: Final = codecs.BOM_UTF8
# How files in other encodings begin, with and without a byte-order mark; the longer ones first.
OTHER_STARTS: Final = (
    (codecs.BOM_UTF32_LE, "UTF-32"), (codecs.BOM_UTF32_BE, "UTF-32"), (b"{\0\0\0", "UTF-32"), (b"\0\0\0{", "UTF-32"),
    (codecs.BOM_UTF16_LE, "UTF-16"), (codecs.BOM_UTF16_BE, "UTF-16"), (b"{\0", "UTF-16"), (b"\0{", "UTF-16"),
)  # fmt: skip


Entry: TypeAlias = tuple[str, bytes, int]
"""Key, value and the offset in the file where the value's bytes begin. A plain tuple, because there is one for every record."""

# Where the cut has come to. Plain numbers, because they are compared at every entry.
BEFORE = 0  # the object has not begun
MEMBERS = 1  # among its members
NESTED = 2  # in a member's list or object that is not opened
INNER = 3  # among the entries of the opened member
CLOSED = 4  # behind the opened member, before the next comma
AFTER = 5  # the object has ended


class Run:
    """Entries that follow one another within a block: mostly hundreds, decoded with one call.

    ``inner`` = they lie in the member that was opened. ``text[:ends[0]]`` is the first, ``text[ends[0] + 1:ends[1]]`` the second, and so
    on; ``offset`` is where ``text`` begins in the file.
    """

    __slots__ = ("ends", "inner", "offset", "place", "text")

    def __init__(self, place: str, text: bytes, ends: list[int], offset: int, *, inner: bool) -> None:
        self.place = place
        self.text = text
        self.ends = ends
        self.offset = offset
        self.inner = inner

    def __len__(self) -> int:
        return len(self.ends)

    def as_object(self) -> bytes:
        """All entries as one JSON object."""
        return b"{%b}" % self.text

    def __iter__(self) -> Iterator[Entry]:
        begin = 0
        for end in self.ends:
            yield self._entry(begin, end)
            begin = end + 1

    def __getitem__(self, index: int) -> Entry:
        index %= len(self.ends)
        return self._entry(self.ends[index - 1] + 1 if index else 0, self.ends[index])

    def _entry(self, begin: int, end: int) -> Entry:
        key, value = key_before(self.place, self.text, begin, end, self.offset)
        return key, self.text[value:end], self.offset + value


def split(read: Callable[[int], bytes], place: str, opened: str | None = None, block_size: int = BLOCK) -> Iterator[Run]:
    """Yield the members of the JSON object that ``read`` streams, in file order, in runs.

    With ``opened``, the entries of that member are yielded as ``inner`` (if it is an object), and then the member itself with the value
    ``{}``. Values are not validated here; everything between them is, when a run is iterated. Equal keys come as often as they occur.

    Raises DumpError at ``place``: not_json (also for JSON that is no object), json_truncated, file_empty, not_utf8, other_encoding,
    too_deep, entry_too_large.
    """
    return _Splitter(read, place, opened, block_size).runs()


def key_before(place: str, text: bytes, begin: int, end: int, offset: int) -> tuple[str, int]:
    """The key that ``text[begin:end]`` starts with, and where its value begins. Raises DumpError (not_json)."""
    found = KEY.match(text, begin, end)
    if found is None:
        raise DumpError("not_json", place, offset=offset + begin, detail='a "name": value pair was expected')
    raw = found[1]
    if BACKSLASH not in raw and raw.isascii() and raw.decode().isprintable():
        return raw.decode(), found.end()
    try:
        return whole_characters(json.loads(b'"%b"' % raw)), found.end()
    except ValueError as error:
        detail = "a name holds a wrong escape or a control character"
        raise DumpError("not_json", place, offset=offset + found.start(1), detail=detail) from error


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

    def runs(self) -> Iterator[Run]:
        block = self._first_block()
        pending = bytearray()  # the beginning of the entry that crosses into this block
        at = BEFORE
        after_comma = False
        opened_at = 0
        run: Run | None = None
        while block:
            self._check_text(block)
            positions, letters = self._tokens(block)
            others = [*np.flatnonzero(letters != COMMA).tolist(), len(positions)]  # the tokens that are no commas
            start = index = other = 0
            while index < len(positions):
                while others[other] < index:
                    other += 1
                if at == NESTED:
                    index = others[other]
                    if index < len(positions):
                        at = MEMBERS if int(letters[index]) in CLOSERS else NESTED
                        index += 1
                    continue
                text_at = self.offset + start - len(pending)
                if at in (INNER, MEMBERS) and others[other] > index:
                    ends = positions[index : others[other]] - (start - len(pending))
                    index = others[other]
                    behind = int(positions[index - 1])
                    run = Run(self.place, bytes(pending) + block[start:behind], ends.tolist(), text_at, inner=at == INNER)
                    yield run
                    start, after_comma = behind + 1, True
                    pending.clear()
                    continue
                position, letter = int(positions[index]), int(letters[index])
                index += 1
                text = bytes(pending) + block[start:position]
                if letter == COMMA:
                    self._expect_nothing(at, text, text_at)
                    if at != CLOSED:
                        raise self._not_json(self.offset + position, "a comma stands where it cannot")
                    at, after_comma = MEMBERS, True
                elif letter in OPENERS:
                    if at == BEFORE:
                        self._expect_nothing(at, text, text_at)
                        if letter != OPENING:
                            raise self._not_json(self.offset + position, "a list begins where an object was expected")
                        at = MEMBERS
                    elif at == MEMBERS:
                        key, value = key_before(self.place, text, 0, len(text), text_at)
                        if letter != OPENING or key != self.opened:
                            at = NESTED
                            continue
                        if value != len(text):
                            raise self._not_json(text_at + value, "an object was expected")
                        at, opened_at = INNER, self.offset + position
                    else:
                        detail = "a comma is missing" if at == CLOSED else "something follows the object"
                        raise self._not_json(self.offset + position, detail)
                    after_comma = False
                else:
                    if letter != CLOSING or at in (BEFORE, AFTER):
                        raise self._not_json(self.offset + position, f"{chr(letter)} stands where it cannot")
                    if at == CLOSED:
                        self._expect_nothing(at, text, text_at)
                    elif after_comma or text.strip(WHITESPACE):
                        run = Run(self.place, text, [len(text)], text_at, inner=at == INNER)
                        yield run
                    if at == INNER:
                        member = json.dumps(self.opened).encode() + b":{}"
                        yield Run(self.place, member, [len(member)], opened_at, inner=False)
                    at, after_comma = CLOSED if at == INNER else AFTER, False
                start = position + 1
                pending.clear()
            pending += memoryview(block)[start:]
            if at in (BEFORE, CLOSED, AFTER):
                self._expect_nothing(at, bytes(pending), self.offset + len(block) - len(pending))
                pending.clear()
            if len(pending) > LARGEST_ENTRY:
                raise DumpError("entry_too_large", self.place, offset=self.offset + len(block) - len(pending), limit=LARGEST_ENTRY >> 20)
            self.offset += len(block)
            block = self.read(self.block_size)
        if at != AFTER:
            record = "–" if run is None else printable(run[-1][0])
            raise DumpError("json_truncated", self.place, offset=self.offset, record=record)

    def _first_block(self) -> bytes:
        """The first block without a byte-order mark; short reads are joined until a mark would show."""
        block = self.read(self.block_size)
        while 0 < len(block) < len(codecs.BOM_UTF32_LE):
            more = self.read(self.block_size)
            if not more:
                break
            block += more
        if not block:
            raise DumpError("file_empty", self.place)
        for start, encoding in OTHER_STARTS:
            if block.startswith(start):
                raise DumpError("other_encoding", self.place, encoding=encoding)
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
            raise DumpError("not_utf8", self.place, offset=self.offset - held + error.start) from error
        self.characters_pending = bool(self.decoder.getstate()[0])

    def _tokens(self, block: bytes) -> tuple[NDArray[np.intp], NDArray[np.uint8]]:
        """Positions and letters of the commas, openings and closings outside strings that belong to the depths of interest."""
        letters: NDArray[np.uint8] = np.frombuffer(block, dtype=np.uint8)
        lower = letters | LOWER
        flags: NDArray[np.bool_] = lower == OPENING
        flags |= lower == CLOSING
        flags |= letters == COMMA
        flags |= letters == QUOTE
        if self.escaped or b"\\" in block:
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
        return positions[outside[wanted]], found[wanted]

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

    def _expect_nothing(self, at: int, text: bytes, offset: int) -> None:
        if text.strip(WHITESPACE):
            detail = {BEFORE: "an object was expected", CLOSED: "a comma is missing"}.get(at, "something follows the object")
            raise self._not_json(offset + len(text) - len(text.lstrip(WHITESPACE)), detail)

    def _not_json(self, offset: int, detail: str) -> DumpError:
        return DumpError("not_json", self.place, offset=offset, detail=detail)


def whole_characters(text: str) -> str:
    """The text with halves of surrogate pairs (``"\\ud800"``) replaced: they cannot be written as UTF-8 again."""
    return text if text.isascii() else HALF_CHARACTER.sub("\ufffd", text)
