"""Send two dumps to a probe_web server and compare them there.

    python -m compare.push LEFT RIGHT --server URL
    curl -s URL/push.py | python3 - LEFT RIGHT --server URL

One file, Python 3.8 or newer, standard library only: it runs on a training host that has nothing of ours. LEFT and RIGHT are a dump.json,
a rank or step folder, a whole run, an archive, or a trainer's log. Only what is read at first is sent: json files, the small tables of key
data, and of a log what holds the configuration that verl printed into it. Tensor files go along with --tensors. The address of the
comparison is all that is written to standard output.

How it goes on after anything: what is sent is a zip that this file writes itself, block by block and the same each time, so that any part
of it can be made again. Nothing is kept in memory or written to disk for that; each side is read twice, once for its sum and length and
once to send it. The server is told the sum first, and what it holds already is not sent.
"""

from __future__ import annotations

import argparse
import base64
import contextlib
import functools
import hashlib
import http.client
import io
import json
import os
import re
import ssl
import struct
import sys
import tarfile
import tempfile
import time
import traceback
import urllib.error
import urllib.parse
import urllib.request
import zipfile
import zlib
from pathlib import Path
from typing import Any, BinaryIO, Callable, Iterator, Sequence  # noqa: UP035 - Python 3.8

AGREES, DIVERGED, BAD_INPUT, NOT_COMPARABLE, FAILED = 0, 1, 2, 3, 4
STATUS = {"identical": AGREES, "consistent": AGREES, "diverged": DIVERGED, "not_comparable": NOT_COMPARABLE}
# Faults of the server's machine; every other error of a comparison says something about the dumps.
SERVER_FAULTS = {"worker_lost", "worker_killed", "out_of_memory", "time_limit", "disk_full", "internal"}

BLOCK = 1 << 20
LARGEST_PATCH, SMALLEST_PATCH = 32 << 20, 64 << 10
TIMEOUT = 60.0
LONGEST_PAUSE = 15.0
LEVEL = 3  # json of dumps shrinks nine times at 200 MB/s; level 6 takes twice as long for a sixth less


class Stop(Exception):
    """It ends here, with one sentence and an exit status."""

    def __init__(self, sentence: str, status: int = BAD_INPUT) -> None:
        super().__init__(sentence)
        self.status = status


class Broken(Exception):
    """No answer came, or one that says "later": worth trying again."""


class Refused(Exception):
    """The server said no."""

    def __init__(self, status: int, code: str, message: str) -> None:
        super().__init__(message)
        self.status = status
        self.code = code


# --- What is sent ---------------------------------------------------------------------------------------------------------------------

ARCHIVE = re.compile(r"\.(zip|tar|tar\.gz|tgz)$", re.IGNORECASE)
STEP, RANK = re.compile(r"step_?[0-9]+"), re.compile(r"(rank_?[0-9]*|(proc|pid)_?[0-9]+)")
SIDE_FILES = ("dump.json", "construct.json", "stack.json")
MAIN_FILES = ("dump.json", "debug.json")
DATABASE = ".vis.db"
# Tables between the stages of an RL loop, small and needed whole: tensors of a dump lie in a folder of their own below the rank.
KEY_DATA = re.compile(
    r"(?:^|/)(?:[^/]+/step_?[0-9]+/(?:(?:rank_?[0-9]*|(?:proc|pid)_?[0-9]+)/)?(?:micro_step_?[0-9]+/)?[^/]+|prob_(?:diff|mask)_step_?[0-9]+)\.npy$"
)
LOG = re.compile(r"\.(log|txt)$", re.IGNORECASE)
PRINTED = b"{'actor_rollout_ref'"  # how verl begins to print its configuration
LARGEST_LOG, LARGEST_LOGS = 1 << 30, 2 << 30  # bytes of one and of all that are looked through; the server reads one as far
WHOLE_LOG = 1 << 20  # up to here it is sent as it is
LOG_HEAD, LOG_STRETCH = 64 << 10, 512 << 10  # of a larger one: its beginning, and what follows where a configuration begins
MOST_CONFIGURATIONS = 4  # of a log that several runs wrote; the last whole one counts
LONGEST_LINE = 4 << 10
WORTH_REPACKING = 1 << 20
BIG = 0xF0000000  # from here on sizes and places take eight bytes: a little below 4 GiB, for what does not shrink grows a little


class Member:
    """A file on its way into a zip: its relative name there, how many bytes it has, and how it is opened (again and again)."""

    def __init__(self, name: str, size: int, opened: Callable[[], Any]) -> None:
        self.name = name
        self.size = size
        self.open = opened


def is_needed(name: str, tensors: bool) -> bool:
    """Is this file of a dump sent? Hidden files and what operating systems add never are."""
    steps = name.split("/")
    if any(step.startswith(".") or step == "__MACOSX" for step in steps):
        return False
    lower = name.lower()
    if tensors or lower.endswith((".json", ".jsonl")):
        return True
    return KEY_DATA.search(lower) is not None or lower.endswith((".yaml", ".yml"))


def open_file(path: Path, size: int, changed_at: int) -> BinaryIO:
    """A file that must still be what it was when its name was taken."""
    try:
        stream = path.open("rb")
    except OSError as error:
        raise Stop(f"{path}: {error.strerror}. Check the path and its permissions") from error
    state = os.fstat(stream.fileno())
    if (state.st_size, state.st_mtime_ns) != (size, changed_at):
        stream.close()
        raise changed(str(path))
    return stream


def changed(name: str) -> Stop:
    return Stop(f"{name} changed while it was read. Wait until the dump is finished, then run the same command again")


def file_member(path: Path, name: str) -> Member:
    state = path.stat()
    return Member(name, state.st_size, lambda: open_file(path, state.st_size, state.st_mtime_ns))


class Logs:
    """Looks through the logs of a side for configurations. A training folder is full of other text, and a log may be hundreds of MB."""

    def __init__(self) -> None:
        self.left = LARGEST_LOGS
        self.sent = []  # type: list[tuple[str, int, int]]  # name, bytes that are sent, bytes of the log
        self.without = self.unread = 0

    def member(self, log: Member) -> Member | None:
        """What of it is sent, in memory: a log that a training still writes must not change between two readings."""
        if min(log.size, LARGEST_LOG) > self.left:
            self.unread += 1
            return None
        self.left -= min(log.size, LARGEST_LOG)
        try:
            with log.open() as stream:
                places = configurations_in(stream)
                part = log_part(stream, log.size, places) if places else b""
        except (OSError, zipfile.BadZipFile, tarfile.TarError, zlib.error, EOFError, RuntimeError):
            self.unread += 1  # a log is not worth giving up a dump for
            return None
        if not part:
            self.without += 1
            return None
        self.sent.append((log.name, len(part), log.size))
        return Member(log.name, len(part), lambda: io.BytesIO(part))

    def said(self) -> Iterator[str]:
        for name, sent, whole in self.sent:
            part = "" if sent >= whole else f" of {size(whole)}: its beginning and the configuration in it"
            yield f"{name}: {size(sent)}{part}"
        if self.without:
            yield f"{'1 log holds' if self.without == 1 else f'{self.without} logs hold'} no configuration that verl printed, and stay here"
        if self.unread:
            yield f"{'1 log' if self.unread == 1 else f'{self.unread} logs'} unreadable or too large to look through: left here"


def configurations_in(stream: Any) -> list[int]:
    """Where in a log configurations begin."""
    places, before, rest = [], 0, b""
    for block in iter(lambda: stream.read(BLOCK), b""):
        text = rest + block
        at = text.find(PRINTED)
        while at >= 0:
            places.append(before - len(rest) + at)
            at = text.find(PRINTED, at + 1)
        before += len(block)
        rest = text[-(len(PRINTED) - 1) :]
        if before >= LARGEST_LOG:
            break
    return places


def log_part(stream: Any, whole: int, places: Sequence[int]) -> bytes:
    """The whole log where it is small; else its beginning, where a launch script shows its environment, and the last configurations."""
    if whole <= WHOLE_LOG:
        stream.seek(0)
        return bytes(stream.read(WHOLE_LOG))
    stretches = [[0, LOG_HEAD]]
    for place in places[-MOST_CONFIGURATIONS:]:
        # The name of the process stands before every line; which lines are of one configuration is told by it.
        near = max(place - LONGEST_LINE, 0)
        stream.seek(near)
        begin = near + stream.read(place - near).rfind(b"\n") + 1
        if begin <= stretches[-1][1]:
            stretches[-1][1] = max(stretches[-1][1], place + LOG_STRETCH)
        else:
            stretches.append([begin, place + LOG_STRETCH])
    parts = []
    for begin, end in stretches:
        stream.seek(begin)
        parts.append(stream.read(end - begin) + b"\n")  # so that no line is made of two
    return b"".join(parts)


def log_member(path: Path, name: str) -> Member:
    """A log as it is now: it may be written on meanwhile."""
    return Member(name, path.stat().st_size, lambda: path.open("rb"))


class Parcel:
    """One upload. ``prepare`` reads it once, and from then on ``length``, ``sha256`` and ``blocks`` say the same."""

    def __init__(self, name: str, reads: int) -> None:
        self.name = name  # what the server is told
        self.reads = reads  # bytes to read for it, for the progress
        self.length = 0
        self.sha256 = ""

    def prepare(self, progress: Progress) -> None:
        total = hashlib.sha256()
        for block in self.first_reading(progress):
            total.update(block)
            self.length += len(block)
        self.sha256 = total.hexdigest()

    def first_reading(self, progress: Progress) -> Iterator[bytes]:
        raise NotImplementedError

    def blocks(self, offset: int) -> Iterator[bytes]:
        """All bytes from ``offset`` on."""
        raise NotImplementedError


class WholeFile(Parcel):
    """A file as it is."""

    def __init__(self, member: Member) -> None:
        super().__init__(member.name, member.size)
        self.member = member

    def first_reading(self, progress: Progress) -> Iterator[bytes]:
        for block in self.blocks(0):
            progress.add(len(block))
            yield block

    def blocks(self, offset: int) -> Iterator[bytes]:
        with self.member.open() as stream:
            stream.seek(offset)
            yield from iter(lambda: stream.read(BLOCK), b"")


class Entry:
    """A member inside the zip: where it starts, and what the first reading found out about it."""

    def __init__(self, member: Member) -> None:
        self.member = member
        self.name = member.name.encode("utf-8", "replace")
        self.packed = member.name.lower().endswith((".json", ".jsonl", ".log", ".txt"))  # tensors hardly shrink
        self.is_big = member.size > BIG
        self.at = self.crc = self.stored = 0

    def about(self) -> bytes:
        """What local header and directory say alike: version, flags (sizes follow the data, names are UTF-8), method, time."""
        return struct.pack("<HHHHH", 45 if self.is_big else 20, 0x0808, 8 if self.packed else 0, 0, 0x21)

    def head(self) -> bytes:
        sizes = b"\xff" * 8 if self.is_big else bytes(8)
        extra = struct.pack("<HHQQ", 1, 16, 0, 0) if self.is_big else b""
        return b"PK\3\4" + self.about() + bytes(4) + sizes + struct.pack("<HH", len(self.name), len(extra)) + self.name + extra

    def tail(self) -> bytes:
        return b"PK\7\x08" + struct.pack("<LQQ" if self.is_big else "<LLL", self.crc, self.stored, self.member.size)

    def listed(self) -> bytes:
        """Its line in the directory."""
        sizes, at, extra = (self.stored, self.member.size), self.at, b""
        if self.is_big or at > BIG:
            extra = struct.pack("<HHQQQ", 1, 24, self.member.size, self.stored, at)
            sizes, at = (0xFFFFFFFF, 0xFFFFFFFF), 0xFFFFFFFF
        line = b"PK\1\2" + struct.pack("<H", 3 << 8 | 45) + self.about() + struct.pack("<LLL", self.crc, *sizes)
        return line + struct.pack("<HHHHHLL", len(self.name), len(extra), 0, 0, 0, 0o100644 << 16, at) + self.name + extra

    def end(self) -> int:
        return self.at + len(self.head()) + self.stored + len(self.tail())


class Zipped(Parcel):
    """Members in a zip that is made while it is sent: json deflated, everything else as it is, no times, the given order."""

    def __init__(self, name: str, members: Sequence[Member]) -> None:
        super().__init__(name, sum(member.size for member in members))
        self.entries = [Entry(member) for member in members]

    def first_reading(self, progress: Progress) -> Iterator[bytes]:
        at = 0
        for entry in self.entries:
            entry.at = at
            yield entry.head()
            read = 0
            for raw, packed in self.content(entry):
                progress.add(len(raw))
                entry.crc = zlib.crc32(raw, entry.crc)
                read += len(raw)
                entry.stored += len(packed)
                if packed:
                    yield packed
            if read != entry.member.size:
                raise changed(entry.member.name)
            yield entry.tail()
            at = entry.end()
        yield self.directory(at)

    def blocks(self, offset: int) -> Iterator[bytes]:
        for entry in self.entries:
            if entry.end() > offset:
                yield from from_offset(self.again(entry, max(offset - entry.at, 0)), max(offset - entry.at, 0))
        directory_at = self.entries[-1].end()
        yield self.directory(directory_at)[max(offset - directory_at, 0) :]

    def again(self, entry: Entry, offset: int) -> Iterator[bytes]:
        """The entry's bytes, of which those before ``offset`` are not looked at: what is not packed is not even read for that."""
        head = entry.head()
        yield head
        skipped = 0 if entry.packed else min(max(offset - len(head), 0), entry.member.size)
        yield from zeros(skipped)
        crc, stored = 0, skipped
        for raw, packed in self.content(entry, skipped):
            crc = zlib.crc32(raw, crc)
            stored += len(packed)
            if packed:
                yield packed
        if stored != entry.stored or (not skipped and crc != entry.crc):
            raise changed(entry.member.name)
        yield entry.tail()

    @staticmethod
    def content(entry: Entry, skipped: int = 0) -> Iterator[tuple[bytes, bytes]]:
        """The entry's bytes as (read, sent); the last is what the packer still held."""
        packer = zlib.compressobj(LEVEL, zlib.DEFLATED, -15) if entry.packed else None
        try:
            with entry.member.open() as stream:
                if skipped:
                    stream.seek(skipped)
                for raw in iter(lambda: stream.read(BLOCK), b""):
                    yield raw, packer.compress(raw) if packer else raw
        except (zipfile.BadZipFile, tarfile.TarError, zlib.error, EOFError, RuntimeError) as error:
            raise Stop(f"{entry.member.name} cannot be unpacked: {error}. Pack it again, or give the folder") from error
        if packer:
            yield b"", packer.flush()

    def directory(self, at: int) -> bytes:
        lines = b"".join(entry.listed() for entry in self.entries)
        count, end = len(self.entries), b""
        if at + len(lines) > BIG or count >= 0xFFFF:
            end = b"PK\6\6" + struct.pack("<QHHLLQQQQ", 44, 45, 45, 0, 0, count, count, len(lines), at)
            end += b"PK\6\7" + struct.pack("<LQL", 0, at + len(lines), 1)
        few, short, near = min(count, 0xFFFF), min(len(lines), 0xFFFFFFFF), at if not end else 0xFFFFFFFF
        return lines + end + b"PK\5\6" + struct.pack("<HHHHLLH", 0, 0, few, few, short, near, 0)


def zeros(count: int) -> Iterator[bytes]:
    while count:
        yield bytes(min(count, BLOCK))
        count -= min(count, BLOCK)


def from_offset(blocks: Iterator[bytes], offset: int) -> Iterator[bytes]:
    """The blocks without their first ``offset`` bytes."""
    for block in blocks:
        if offset >= len(block):
            offset -= len(block)
        else:
            yield block[offset:] if offset else block
            offset = 0


class Side:
    """One side of the comparison: what it is called, and what goes up for it."""

    def __init__(self, given: str, tensors: bool) -> None:
        self.given = given
        self.tensors = tensors
        self.left_out = 0  # bytes of tensor files
        self.logs = Logs()
        self.parcels: list[Parcel] = []
        path = Path(given).resolve()
        try:
            self.gather(path)
        except FileNotFoundError:
            raise Stop(f"{given}: the file does not exist. Check the path") from None
        except OSError as error:
            raise Stop(f"{given}: {error.strerror or error}. Check the path and its permissions") from error
        self.name = readable(ARCHIVE.sub("", path.name) or path.name)
        for parcel in self.parcels:
            parcel.name = readable(parcel.name)

    def gather(self, path: Path) -> None:
        if path.is_dir():
            self.gather_folder(path)
        elif path.name == SIDE_FILES[0]:
            beside = [path.parent / file for file in SIDE_FILES if (path.parent / file).is_file()]
            self.parcels.append(Zipped(path.name + ".zip", [file_member(file, numbered(path.parent) + file.name) for file in beside]))
        elif LOG.search(path.name):
            log = self.logs.member(log_member(path, path.name))
            if log is None:
                raise Stop(f"{self.given}: there is no configuration in it that verl printed. Give what msprobe wrote")
            self.parcels.append(Zipped(path.name + ".zip", [log]))
        else:
            self.parcels.append(self.whole_or_repacked(path, path.name))

    def gather_folder(self, folder: Path) -> None:
        prefix, loose, databases = numbered(folder) or folder.name + "/", [], []

        def refuse(error: OSError) -> None:
            raise error

        for parent, folders, files in os.walk(str(folder), onerror=refuse):
            folders.sort()
            for path in (Path(parent) / file for file in sorted(files)):
                below = prefix + path.relative_to(folder).as_posix()
                if not path.is_file():
                    continue
                if ARCHIVE.search(path.name) and is_needed(below, True):
                    self.parcels.append(self.whole_or_repacked(path, below))
                elif path.name.lower().endswith(DATABASE) and is_needed(below, True):
                    databases.append(file_member(path, below))
                elif LOG.search(path.name):
                    log = self.logs.member(log_member(path, below)) if is_needed(below, True) else None
                    loose.extend([log] if log is not None else [])
                elif is_needed(below, self.tensors):
                    loose.append(file_member(path, below))
                elif is_needed(below, True):
                    self.left_out += path.stat().st_size
        if not self.parcels and not any(member.name.lower().endswith(MAIN_FILES) for member in loose):
            loose.extend(databases)  # what graph_visualize made of dumps that are no longer beside it
        if not self.parcels and not any(member.name.lower().endswith((".json", ".npy", ".log", ".txt", DATABASE)) for member in loose):
            raise Stop(f"{self.given}: there is no dump.json in it, and no archive. Give what msprobe wrote")
        if loose:
            self.parcels.append(Zipped(folder.name + ".zip", loose))

    def whole_or_repacked(self, path: Path, name: str) -> Parcel:
        """An archive (or any other lone file) as it is, unless leaving tensor files out of it spares much."""
        members = [] if self.tensors else archive_members(path)
        needed = [member for member in members if is_needed(member.name, False)]
        spared = sum(member.size for member in members) - sum(member.size for member in needed)
        if not needed or spared < WORTH_REPACKING:
            return WholeFile(file_member(path, name))
        logs = [member for member in members if LOG.search(member.name) and is_needed(member.name, True)]
        self.left_out += spared - sum(member.size for member in logs)
        parts = [part for part in map(self.logs.member, logs) if part is not None]
        return Zipped(ARCHIVE.sub("", name) + ".zip", [*needed, *parts])


def archive_members(path: Path) -> list[Member]:
    """The files in a zip or tar; none of a file that is neither, or that the server had better look at itself."""
    with contextlib.suppress(zipfile.BadZipFile, tarfile.TarError, zlib.error, EOFError, ValueError, NotImplementedError):
        if zipfile.is_zipfile(str(path)):
            return zip_members(zipfile.ZipFile(str(path)))
        if tarfile.is_tarfile(str(path)):
            return tar_members(tarfile.open(str(path)))
    return []


def zip_members(archive: zipfile.ZipFile) -> list[Member]:
    files = [info for info in archive.infolist() if not info.is_dir()]
    return [Member(info.filename, info.file_size, functools.partial(archive.open, info)) for info in files]


def tar_members(archive: tarfile.TarFile) -> list[Member]:
    files = [info for info in archive.getmembers() if info.isreg()]
    return [Member(info.name, info.size, functools.partial(archive.extractfile, info)) for info in files]


def numbered(folder: Path) -> str:
    """``stepN/rankN/``, ``stepN/`` or ``rankN/``: the numbers that the folder's own place says."""
    kept = []
    if RANK.fullmatch(folder.name):
        kept.append(folder.name)
        folder = folder.parent
    if STEP.fullmatch(folder.name):
        kept.insert(0, folder.name)
    return "".join(step + "/" for step in kept)


def readable(name: str) -> str:
    """A file name as text that can be sent."""
    return name.encode("utf-8", "replace").decode()[:200]


# --- What is said meanwhile -----------------------------------------------------------------------------------------------------------


def size(count: float) -> str:
    for unit in ("bytes", "kB", "MB"):
        if count < 1000:
            return f"{count:.0f} {unit}" if unit == "bytes" else f"{count:.1f} {unit}"
        count /= 1000
    return f"{count:.2f} GB"


class Progress:
    """Bytes of a total and their speed, on standard error: one line that is rewritten on a terminal, else a line every ten seconds."""

    def __init__(self) -> None:
        self.rewrites = sys.stderr.isatty()
        self.what = ""
        self.begin("", 0)

    def begin(self, what: str, total: int, done: int = 0) -> None:
        self.clear()
        self.what, self.total, self.done = what, total, done
        self.samples = [(time.monotonic(), done)]
        self.shown = time.monotonic()

    def add(self, count: int) -> None:
        self.at(self.done + count)

    def at(self, done: int) -> None:
        self.done = done
        now = time.monotonic()
        if now - self.shown >= (0.2 if self.rewrites else 10.0):
            self.shown = now
            self.samples = [*self.samples, (now, done)][-20:]
            self.show()

    def show(self) -> None:
        line = f"{self.what}: {size(self.done)} of {size(self.total)}"
        (then, before), (now, done) = self.samples[0], self.samples[-1]
        if self.total:
            line += f" ({100 * self.done // self.total} %)"
        if now > then and done > before:
            line += f", {size((done - before) / (now - then))}/s"
        self.write(f"\r\033[K{line}" if self.rewrites else line + "\n")

    def say(self, sentence: str) -> None:
        self.clear()
        self.write(sentence + "\n")

    def clear(self) -> None:
        if self.rewrites and self.what:
            self.write("\r\033[K")

    @staticmethod
    def write(text: str) -> None:
        with contextlib.suppress(OSError):
            sys.stderr.write(text)
            sys.stderr.flush()


# --- The server -----------------------------------------------------------------------------------------------------------------------


class Answer:
    def __init__(self, status: int, headers: Any, body: bytes) -> None:
        self.status = status
        self.headers = headers
        self.body = body

    def json(self) -> Any:
        try:
            return json.loads(self.body)
        except ValueError:
            return None


class NoRedirects(urllib.request.HTTPRedirectHandler):
    """A redirect would turn a POST into a GET and carry the token to another host."""

    def redirect_request(self, *_: Any) -> None:
        return None


class Server:
    """A probe_web by its address. Proxies are those of the environment (http_proxy, https_proxy, no_proxy); certificates are checked."""

    def __init__(self, url: str, token: str) -> None:
        parts = urllib.parse.urlsplit(url if "//" in url else "http://" + url)
        if parts.scheme not in ("http", "https") or not parts.hostname:
            raise Stop(f"--server {url}: this is no address. Give it as the server's start printed it, like http://host:8000")
        self.url = urllib.parse.urlunsplit((parts.scheme, parts.netloc, parts.path.rstrip("/"), "", ""))
        self.token = token
        self.opener = urllib.request.build_opener(NoRedirects)

    def call(self, method: str, path: str, body: Any = None, **headers: str) -> Answer:
        """One request. Raises Broken where no answer came, or 5xx or 429; Refused for every other refusal."""
        request = urllib.request.Request(self.url + path, data=body, method=method)  # noqa: S310 - the scheme is checked above
        for name, value in headers.items():
            request.add_header(name.replace("_", "-"), value)
        request.add_header("User-Agent", "probe_web push")
        if self.token:
            request.add_header("Authorization", f"Bearer {self.token}")
        try:
            with self.opener.open(request, timeout=TIMEOUT) as response:
                return Answer(response.status, response.headers, response.read())
        except urllib.error.HTTPError as error:
            with error, contextlib.suppress(OSError, http.client.HTTPException):
                return self.checked(Answer(error.code, error.headers, error.read()))
            raise Broken(f"the answer broke off after status {error.code}") from error
        except (OSError, http.client.HTTPException) as error:
            reason = getattr(error, "reason", error)
            if isinstance(reason, ssl.SSLCertVerificationError):
                raise Stop(
                    f"{self.url}: its certificate is not trusted ({reason.verify_message}). "
                    "Name the file of your own authority in the environment: SSL_CERT_FILE=/path/ca.pem"
                ) from error
            raise Broken(getattr(reason, "strerror", None) or str(reason) or type(reason).__name__) from error

    def checked(self, answer: Answer) -> Answer:
        if answer.status == 304:
            return answer
        said = answer.json()
        code, message = "", f"the server answered {answer.status} {http.client.responses.get(answer.status, '')}".strip()
        if isinstance(said, dict) and isinstance(said.get("code"), str):
            code, message = said["code"], one_line(said.get("message") or said["code"])
        if 300 <= answer.status < 400:
            raise Stop(f"{self.url} sends on to {answer.headers.get('Location')}. Give that address as --server")
        if answer.status in (429, 500, 502, 503, 504):
            raise Broken(message)
        raise Refused(answer.status, code, message)

    def get(self, path: str, **headers: str) -> Answer:
        return self.call("GET", path, **headers)

    def post(self, path: str, data: Any) -> Any:
        return self.call("POST", path, json.dumps(data).encode(), Content_Type="application/json").json()

    def about(self) -> Any:
        """What the server says of itself: the first thing that is asked, so its failures are mostly mistakes in the address."""
        try:
            said = self.get("/api/v1/about/").json()
        except Broken as error:
            raise Stop(f"{self.url} cannot be reached: {error}. Check --server, the network and the proxy settings") from error
        if not isinstance(said, dict) or "public_url" not in said:
            raise Stop(f"{self.url} answers, but is no probe_web. Check --server")
        if not said.get("may_send", True):
            told = "does not take this token: it is unknown, expired or revoked" if self.token else "takes dumps only with a token"
            raise Stop(f"{self.url} {told}. Ask who runs it for one (manage.py token), and give it as --token or in PROBE_TOKEN")
        return said

    def link(self, about: Any, path: str) -> str:
        """The address that a person opens. A server that only knows its own loopback address is reached by the one given here."""
        public = str(about["public_url"])
        here = is_loopback(urllib.parse.urlsplit(self.url).hostname)
        return (self.url if is_loopback(urllib.parse.urlsplit(public).hostname) and not here else public) + path


def is_loopback(host: str | None) -> bool:
    return host in ("localhost", "::1") or (host or "").startswith("127.")


def one_line(text: Any) -> str:
    return " ".join("".join(letter if letter.isprintable() else " " for letter in str(text)).split())


class Remembered:
    """Which uploads were begun, by server and sum, so that the same command goes on where it stood. A folder that cannot be written to
    only means that it starts anew."""

    def __init__(self) -> None:
        folder = os.environ.get("XDG_STATE_HOME") or "~/.local/state"
        self.path = Path(os.path.expanduser(folder)) / "probe_web" / "push.json"  # noqa: PTH111 - pathlib raises where there is no home

    def read(self) -> dict[str, str]:
        with contextlib.suppress(OSError, ValueError):
            found = json.loads(self.path.read_text(encoding="utf-8"))
            if isinstance(found, dict):
                return {str(key): str(value) for key, value in found.items()}
        return {}

    def change(self, key: str, upload: str | None) -> None:
        known = self.read()
        known.pop(key, None)
        if upload:
            known[key] = upload  # at the end: the oldest are the first to be forgotten
        with contextlib.suppress(OSError):
            self.path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
            # Whoever knows the id of an upload may write it: the file is for its owner alone.
            descriptor, making = tempfile.mkstemp(dir=str(self.path.parent))
            with os.fdopen(descriptor, "w", encoding="utf-8") as file:
                json.dump(dict(list(known.items())[-1000:]), file)
            Path(making).replace(self.path)


class Cursor:
    """Reads a parcel forward, and anew only where the place is another than the last."""

    def __init__(self, parcel: Parcel) -> None:
        self.parcel = parcel
        self.at = -1
        self.rest = b""
        self.source: Iterator[bytes] = iter(())

    def take(self, offset: int, count: int) -> Iterator[bytes]:
        """``count`` bytes from ``offset`` on."""
        if offset != self.at:
            self.source, self.rest, self.at = self.parcel.blocks(offset), b"", offset
        while count:
            block = self.rest or next(self.source, b"")
            if not block:
                raise changed(self.parcel.name)
            given, self.rest = block[:count], block[count:]
            self.at += len(given)
            count -= len(given)
            yield given


class Sender:
    """Brings parcels to the server, through everything that passes."""

    def __init__(self, server: Server, progress: Progress, patience: float) -> None:
        self.server = server
        self.progress = progress
        self.patience = patience
        self.remembered = Remembered()
        self.stuck_at, self.stuck_since = ("", 0), 0.0

    def patiently(self, action: Callable[[], Any]) -> Any:
        """Do it until it works; whatever does not pass within the patience ends it."""
        begun, pause = time.monotonic(), 0.5
        while True:
            try:
                return action()
            except Broken as error:
                if time.monotonic() - begun > self.patience:
                    raise Stop(f"{self.server.url}: {error}. Run the same command again: it goes on from there", FAILED) from error
                self.progress.say(f"{error}; trying again in {pause:.0f} s" if pause >= 1 else f"{error}; trying again")
                time.sleep(pause)
                pause = min(pause * 2, LONGEST_PAUSE)

    def post(self, path: str, data: Any) -> Any:
        return self.patiently(lambda: self.server.post(path, data))

    def send(self, parcel: Parcel, before: int) -> str:
        """Send a parcel, ``before`` bytes of others lie behind; returns the id of its upload."""
        upload, offset = self.patiently(lambda: self.find(parcel) or self.create(parcel))
        if offset == parcel.length:
            self.progress.say(f"{parcel.name} is there already")
        elif offset:
            self.progress.say(f"{parcel.name}: {size(offset)} of {size(parcel.length)} are there already")
        self.progress.begin("sending", self.progress.total, before + offset)
        cursor, largest = Cursor(parcel), LARGEST_PATCH
        while offset < parcel.length:
            begun_at = offset
            try:
                offset = self.patch(upload, cursor, offset, min(largest, parcel.length - offset), before)
                largest = min(largest * 2, LARGEST_PATCH)
            except (Broken, Refused) as error:
                # Passing: it stands elsewhere, another request writes it, it is gone; 413 without a code is a proxy's.
                if isinstance(error, Refused) and (
                    error.code == "upload_changed" or (error.status not in (404, 409, 410, 423) and (error.status, error.code) != (413, ""))
                ):
                    raise
                # A body that is refused before it is read looks like a lost connection, and proxies have limits of their own: less at once.
                largest = max(largest // 4, SMALLEST_PATCH)
                offset = self.wait_for(parcel, upload, begun_at, error)
        return str(upload)

    def patch(self, upload: str, cursor: Cursor, offset: int, count: int, before: int) -> int:
        def body() -> Iterator[bytes]:
            done = before + offset
            for block in cursor.take(offset, count):
                yield block
                done += len(block)
                self.progress.at(done)

        answer = self.server.call(
            "PATCH",
            f"/api/v1/uploads/{upload}/",
            body(),
            Tus_Resumable="1.0.0",
            Upload_Offset=str(offset),
            Content_Length=str(count),
            Content_Type="application/offset+octet-stream",
        )
        return int(answer.headers["Upload-Offset"])

    def wait_for(self, parcel: Parcel, upload: str, before: int, error: Exception) -> int:
        """Where the upload stands once the server answers again. Gives up where nothing moves for as long as the patience."""
        now = time.monotonic()
        if self.stuck_at != (upload, before):
            self.stuck_at, self.stuck_since = (upload, before), now
        if now - self.stuck_since > self.patience:
            raise Stop(f"{self.server.url}: {one_line(error)}. Run the same command again: it goes on from there", FAILED)
        self.progress.say(f"{one_line(error)}; going on")
        time.sleep(min(0.3 + (now - self.stuck_since) / 2, LONGEST_PAUSE))
        found = self.patiently(lambda: self.find(parcel, upload))
        if found is None:
            raise Stop(f"{parcel.name}: the server has forgotten the upload. Run the same command again", FAILED)
        return int(found[1])

    def key(self, parcel: Parcel) -> str:
        return f"{self.server.url} {parcel.sha256}"

    def find(self, parcel: Parcel, upload: str | None = None) -> tuple[str, int] | None:
        """An upload of this content that was begun before, and where it stands."""
        known = upload or self.remembered.read().get(self.key(parcel))
        if not known or not re.fullmatch(r"[-\w]{1,64}", known):
            return None
        try:
            answer = self.server.call("HEAD", f"/api/v1/uploads/{known}/", Tus_Resumable="1.0.0")
        except Refused as error:
            if error.status in (404, 410):
                self.remembered.change(self.key(parcel), None)
                return None
            raise
        if int(answer.headers.get("Upload-Length", -1)) != parcel.length:
            return None
        return known, int(answer.headers["Upload-Offset"])

    def create(self, parcel: Parcel) -> tuple[str, int]:
        about = {"filename": parcel.name, "sha256": parcel.sha256}
        said = ",".join(f"{key} {base64.b64encode(value.encode()).decode()}" for key, value in about.items())
        answer = self.server.call(
            "POST", "/api/v1/uploads/", b"", Tus_Resumable="1.0.0", Upload_Length=str(parcel.length), Upload_Metadata=said
        )
        upload = answer.headers["Location"].rstrip("/").rsplit("/", 1)[-1]
        self.remembered.change(self.key(parcel), upload)
        return upload, int(answer.headers.get("Upload-Offset") or 0)


# --- The command ----------------------------------------------------------------------------------------------------------------------


def arguments(given: Sequence[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="push",
        description="Sends two dumps to a probe_web server and prints the address of their comparison.",
        epilog="Run again after anything: it goes on where it stood. Exit status: 0 sent (with --wait: identical or consistent), "
        "1 diverged, 2 bad input or refused, 3 not comparable, 4 the server or the network failed.",
    )
    parser.add_argument("left", metavar="LEFT", help="usually train: a dump.json, rank or step folder, whole run, or archive")
    parser.add_argument("right", metavar="RIGHT", help="usually inference")
    parser.add_argument("--server", metavar="URL", default=os.environ.get("PROBE_SERVER"), help="as its start printed it (or PROBE_SERVER)")
    parser.add_argument("--token", default=os.environ.get("PROBE_TOKEN", ""), help="where the server asks for one (better: PROBE_TOKEN)")
    parser.add_argument("--name", default="", help="what the comparison is called")
    parser.add_argument("--option", action="append", default=[], metavar="NAME=VALUE", help="step=0, rank=0:1, stage=NAME …; may repeat")
    parser.add_argument("--exact", action="store_true", help="determinism check: any pair that is not equal counts as diverged")
    parser.add_argument("--tensors", action="store_true", help="send tensor files too")
    parser.add_argument("--wait", action="store_true", help="wait for the verdict, print it, and end with its status")
    parser.add_argument("--patience", type=float, default=600.0, metavar="SECONDS", help="give up after so long without a byte (600)")
    asked = parser.parse_args(given)
    if not asked.server:
        parser.error("--server is missing: the address that the server's start printed")
    return asked


def options(asked: argparse.Namespace) -> dict[str, Any]:
    found: dict[str, Any] = {"exact": True} if asked.exact else {}
    for option in asked.option:
        name, equals, value = option.partition("=")
        if not equals:
            raise Stop(f"--option {option}: give it as NAME=VALUE, like step=0")
        found[name.strip()] = value == "true" if value in ("true", "false") else value
    return found


def push(asked: argparse.Namespace, progress: Progress) -> int:
    chosen = options(asked)
    sides = [Side(path, asked.tensors) for path in (asked.left, asked.right)]
    server = Server(asked.server, asked.token)
    about = server.about()
    parcels = [parcel for side in sides for parcel in side.parcels]
    spared = sum(side.left_out for side in sides)
    if spared:
        progress.say(f"{size(spared)} of tensor files stay here; --tensors sends them too")
    for side in sides:
        for sentence in side.logs.said():
            progress.say(sentence)
    progress.begin("reading", sum(parcel.reads for parcel in parcels))
    for parcel in parcels:
        parcel.prepare(progress)
    sender = Sender(server, progress, asked.patience)
    total = sum(parcel.length for parcel in parcels)
    progress.begin("sending", total)
    progress.say(f"{size(total)} for {server.url}")
    runs, behind = [], 0
    for side in sides:
        uploads = []
        for parcel in side.parcels:
            uploads.append(sender.send(parcel, behind))
            behind += parcel.length
        runs.append(sender.post("/api/v1/runs/", {"uploads": uploads, "name": side.name})["id"])
    progress.clear()
    comparison = sender.post("/api/v1/comparisons/", {"left": runs[0], "right": runs[1], "options": chosen, "name": asked.name})
    print_line(server.link(about, comparison["url"]))
    return wait(sender, comparison["id"], progress) if asked.wait else AGREES


def wait(sender: Sender, comparison: str, progress: Progress) -> int:
    """Until the verdict is known; prints its sentence."""
    path, etag, pause = f"/api/v1/comparisons/{comparison}/", "", 0.3
    while True:
        answer = sender.patiently(functools.partial(sender.server.get, path, **({"If_None_Match": etag} if etag else {})))
        etag = answer.headers.get("ETag") or etag
        found = answer.json() if answer.status == 200 else None
        if found and found.get("verdict"):
            print_line(one_line(found["verdict"]["headline"]["zh" if speaks_chinese() else "en"]))
            return STATUS[found["verdict"]["verdict"]]
        if found and found["state"] not in ("queued", "running"):
            error = found.get("error") or {}
            sentence = one_line(error.get("message") or f"the comparison was {found['state']}")
            raise Stop(sentence, FAILED if found["state"] != "failed" or error.get("code") in SERVER_FAULTS else BAD_INPUT)
        time.sleep(pause)
        pause = min(pause * 1.3, 3.0)


def speaks_chinese() -> bool:
    spoken = next((os.environ[name] for name in ("LC_ALL", "LC_MESSAGES", "LANG") if os.environ.get(name)), "")
    return spoken.lower().startswith("zh")


def print_line(text: str) -> None:
    sys.stdout.write(text + "\n")
    sys.stdout.flush()


def main(given: Sequence[str] | None = None) -> int:
    for stream in (sys.stdout, sys.stderr):
        if hasattr(stream, "reconfigure"):
            stream.reconfigure(errors="replace")
    asked = arguments(sys.argv[1:] if given is None else given)
    progress = Progress()
    try:
        return push(asked, progress)
    except Stop as error:
        progress.say(f"push: {error}")
        return error.status
    except Refused as error:
        progress.say(f"push: {error}")
        return FAILED if error.status >= 500 else BAD_INPUT
    except BrokenPipeError:  # whoever read the address has gone
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return BAD_INPUT
    except KeyboardInterrupt:
        progress.say("push: stopped. The same command goes on from there")
        return BAD_INPUT
    except Exception:  # noqa: BLE001 - anything else is a fault of ours: one line, the rest in a log
        with tempfile.NamedTemporaryFile("w", prefix="probe-web-", suffix=".log", delete=False, encoding="utf-8") as log:
            log.write(traceback.format_exc())
        progress.say(f"push: internal error; please report it with {log.name}")
        return FAILED


if __name__ == "__main__":
    sys.exit(main())
