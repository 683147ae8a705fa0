"""Real services for the tests: Redis and PostgreSQL as the distribution ships them, and a whole probe_web of real processes.

Nothing here imitates anything. What cannot be had on a machine is left out by a skip that says so; under CI=true that is a failure.
"""

from __future__ import annotations

import contextlib
import json
import os
import shutil
import signal
import socket
import subprocess
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

import psutil
import pytest

from probe_web.embedded.children import end_with_parent

ROOT = Path(__file__).resolve().parent.parent


def missing(service: str, package: str) -> None:
    """Leave the test out because a service is not installed; fail where that must not happen."""
    sentence = f"{service} is not installed here (apt-get install {package})"
    if os.environ.get("CI", "").lower() in {"1", "true"}:
        pytest.fail(sentence)
    pytest.skip(sentence)


def free_port(host: str = "127.0.0.1") -> int:
    with socket.socket() as probe:
        probe.bind((host, 0))
        return int(probe.getsockname()[1])


def until(what: str, condition: Any, seconds: float = 30.0, every: float = 0.1) -> Any:
    """Call `condition` until it returns something true; that is the result. Fails with `what` when the time is over."""
    deadline = time.monotonic() + seconds
    while True:
        found = condition()
        if found:
            return found
        if time.monotonic() > deadline:
            pytest.fail(f"not within {seconds:.0f} s: {what}")
        time.sleep(every)


def accepts(port: int) -> bool:
    with contextlib.suppress(OSError), socket.create_connection(("127.0.0.1", port), timeout=1):
        return True
    return False


def ending_with_the_tests() -> Callable[[], None]:
    """For Popen: tests that are killed leave no server behind."""
    tests = os.getpid()
    return lambda: end_with_parent(tests, signal.SIGTERM)


@contextlib.contextmanager
def redis_server(folder: Path, port: int | None = None) -> Iterator[str]:
    """Debian's redis-server on a loopback port, nothing on disk. Yields its URL."""
    binary = shutil.which("redis-server")
    if binary is None:
        missing("redis-server", "redis-server")
    port = port or free_port()
    folder.mkdir(parents=True, exist_ok=True)
    with (folder / "redis.log").open("ab") as log:
        process = subprocess.Popen(
            [str(binary), "--port", str(port), "--bind", "127.0.0.1", "--save", "", "--appendonly", "no", "--dir", str(folder)],
            stdout=log,
            stderr=log,
            preexec_fn=ending_with_the_tests(),
        )
    try:
        until("redis-server accepts connections", lambda: accepts(port))
        yield f"redis://127.0.0.1:{port}/0"
    finally:
        process.terminate()
        process.wait(10)


def initdb() -> Path | None:
    """PostgreSQL's initdb: the distribution's newest, or the wheel's."""
    found = sorted(Path("/usr/lib/postgresql").glob("*/bin/initdb"), key=lambda path: float(path.parent.parent.name))
    if found:
        return found[-1]
    on_path = shutil.which("initdb")
    if on_path:
        return Path(on_path)
    with contextlib.suppress(ImportError):
        import pgserver

        bundled = Path(pgserver.__file__).parent / "pginstall" / "bin" / "initdb"
        if bundled.exists():
            return bundled
    return None


def as_other_user() -> list[str]:
    """PostgreSQL refuses to run as root: the words that run it as somebody else there."""
    if os.getuid() != 0:
        return []
    names = {line.split(":")[0] for line in Path("/etc/passwd").read_text().splitlines()}
    return ["runuser", "-u", "postgres" if "postgres" in names else "nobody", "--"]


@contextlib.contextmanager
def postgres_server(folder: Path) -> Iterator[str]:
    """A PostgreSQL cluster of its own on a loopback port. Yields the URL of its server's first database."""
    program = initdb()
    if program is None:
        missing("PostgreSQL", "postgresql")
    assert program is not None
    prefix, port = as_other_user(), free_port()
    folder.mkdir(parents=True, exist_ok=True)
    if prefix:
        # The other user must reach the folder through those of pytest, which are root's alone.
        shutil.chown(folder, prefix[2])
        for parent in folder.parents:
            if parent.stat().st_uid == 0 and not parent.stat().st_mode & 0o001:
                parent.chmod(parent.stat().st_mode | 0o011)
    cluster = folder / "cluster"
    subprocess.run(
        [*prefix, str(program), "-D", str(cluster), "-U", "probe_web", "-A", "trust", "-E", "UTF8", "--locale=C", "--no-sync"],
        check=True,
        stdout=subprocess.DEVNULL,
        cwd=folder,
    )
    with (folder / "postgres.log").open("ab") as log:
        process = subprocess.Popen(
            [
                *(*prefix, str(program.with_name("postgres")), "-D", str(cluster), "-p", str(port), "-h", "127.0.0.1"),
                *("-k", "", "-c", "fsync=off"),
            ],
            stdout=log,
            stderr=log,
            cwd=folder,
            preexec_fn=ending_with_the_tests(),
        )
    try:
        until("PostgreSQL accepts connections", lambda: accepts(port))
        url = f"postgres://probe_web@127.0.0.1:{port}/postgres"
        until("PostgreSQL answers", lambda: answers_sql(url))
        yield url
    finally:
        # runuser stands before the server: ask that itself, a fast shutdown.
        for child in [*psutil.Process(process.pid).children(), psutil.Process(process.pid)]:
            with contextlib.suppress(psutil.Error):
                child.send_signal(signal.SIGINT)
        process.wait(20)


def answers_sql(url: str) -> bool:
    import psycopg

    with contextlib.suppress(psycopg.Error), psycopg.connect(url, connect_timeout=2):
        return True
    return False


class Answer:
    """What the server said: status, headers, and the body as bytes or JSON."""

    def __init__(self, status: int, headers: Mapping[str, str], body: bytes) -> None:
        self.status = status
        self.headers = headers
        self.body = body

    def json(self) -> Any:
        return json.loads(self.body)

    def __repr__(self) -> str:
        return f"<{self.status} {self.body[:300]!r}>"


class Stack:
    """A probe_web of real processes, started as ./run starts it, on a data folder of its own.

    `url` is its address. `child(name)` is the process of "broker", "worker" or "web server"; `log(name)` what it wrote.
    """

    def __init__(self, data: Path, environment: Mapping[str, str], arguments: tuple[str, ...]) -> None:
        self.data = data
        self.output = data.parent / f"{data.name}.out"
        self.environment = {
            **{name: value for name, value in os.environ.items() if not name.startswith(("PROBE_", "DATABASE_URL", "REDIS_URL"))},
            "PYTHONPATH": str(ROOT),
            "PYTHONSAFEPATH": "1",
            **environment,
        }
        self.arguments = arguments
        self.process: subprocess.Popen[bytes] | None = None
        self.url = ""

    def start(self, seconds: float = 90.0) -> Stack:
        self.output.parent.mkdir(parents=True, exist_ok=True)
        with self.output.open("wb") as out:
            self.process = subprocess.Popen(
                [sys.executable, "-m", "probe_web.embedded", "--data", str(self.data), *self.arguments],
                env=self.environment,
                stdin=subprocess.DEVNULL,
                stdout=out,
                stderr=subprocess.STDOUT,
                # As in a terminal: Ctrl-C reaches the group.
                start_new_session=True,
                preexec_fn=ending_with_the_tests(),
            )
        self.url = until("the server says its address", self._address_or_end, seconds)
        return self

    def _address_or_end(self) -> str:
        assert self.process is not None
        said = self.output.read_text(errors="replace")
        for line in said.splitlines():
            if "is ready at" in line:
                return line.split()[-1].rstrip("/")
        if self.process.poll() is not None:
            pytest.fail(f"the server ended with status {self.process.returncode}:\n{said}")
        return ""

    def call(self, method: str, path: str, body: bytes | None = None, headers: Mapping[str, str] | None = None) -> Answer:
        request = urllib.request.Request(self.url + path, data=body, method=method, headers=dict(headers or {}))
        try:
            with urllib.request.urlopen(request, timeout=60) as response:
                return Answer(response.status, dict(response.headers), response.read())
        except urllib.error.HTTPError as error:
            return Answer(error.code, dict(error.headers), error.read())

    def get(self, path: str, **headers: str) -> Answer:
        return self.call("GET", path, headers=headers)

    def post(self, path: str, data: Any) -> Answer:
        return self.call("POST", path, json.dumps(data).encode(), {"Content-Type": "application/json"})

    def upload(self, *files: Path, name: str = "", role: str = "auto") -> str:
        """Send one archive, or loose files, as one run; returns its id."""
        boundary = "probe-web-test-boundary"
        parts = [
            f'--{boundary}\r\nContent-Disposition: form-data; name="{key}"\r\n\r\n{value}\r\n'.encode()
            for key, value in {"name": name or files[0].stem, "role": role}.items()
        ]
        for file in files:
            head = f'--{boundary}\r\nContent-Disposition: form-data; name="files"; filename="{file.name}"\r\n'
            parts.append(head.encode() + b"Content-Type: application/octet-stream\r\n\r\n" + file.read_bytes() + b"\r\n")
            if len(files) > 1:
                parts.append(f'--{boundary}\r\nContent-Disposition: form-data; name="paths"\r\n\r\n{file.name}\r\n'.encode())
        body = b"".join(parts) + f"--{boundary}--\r\n".encode()
        answer = self.call("POST", "/api/v1/runs/", body, {"Content-Type": f"multipart/form-data; boundary={boundary}"})
        assert answer.status == 201, answer
        return str(answer.json()["id"])

    def compare(self, left: str, right: str, **options: Any) -> str:
        """Compare two runs; returns the comparison's id."""
        answer = self.post("/api/v1/comparisons/", {"left": left, "right": right, "options": options})
        assert answer.status == 201, answer
        return str(answer.json()["id"])

    def comparison(self, slug: str, *states: str, seconds: float = 60.0, every: float = 0.1) -> Any:
        """The comparison once it is in one of `states` (done, failed, cancelled or interrupted unless told)."""
        wanted = states or ("done", "failed", "cancelled", "interrupted")

        def look() -> Any:
            found = self.get(f"/api/v1/comparisons/{slug}/").json()
            return found if found["state"] in wanted else None

        return until(f"comparison {slug} is {' or '.join(wanted)}", look, seconds, every)

    def child(self, name: str) -> psutil.Process:
        """A child of the supervisor by what it runs."""
        words = {"broker": "valkey-server", "worker": "probe_web.worker", "web server": "gunicorn"}[name]
        assert self.process is not None
        for process in psutil.Process(self.process.pid).children():
            with contextlib.suppress(psutil.Error):
                if any(words in word for word in process.cmdline()):
                    return process
        raise LookupError(name)

    def family(self) -> list[psutil.Process]:
        """Every process below the supervisor."""
        assert self.process is not None
        return psutil.Process(self.process.pid).children(recursive=True)

    def log(self, name: str) -> str:
        return (self.data / "logs" / f"{name}.log").read_text(errors="replace")

    def stop(self, number: int = signal.SIGINT, seconds: float = 30.0) -> int:
        """End it as Ctrl-C does; returns its exit status."""
        assert self.process is not None
        if self.process.poll() is None:
            self.process.send_signal(number)
        try:
            return self.process.wait(seconds)
        except subprocess.TimeoutExpired:
            for process in self.family():
                process.kill()
            self.process.kill()
            raise
