"""A child process of the supervisor: its own process group, its own log, and an end together with the supervisor's."""

from __future__ import annotations

import contextlib
import ctypes
import os
import signal
import subprocess
import sys
import time
from collections import deque
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent.parent
LOG_BYTES = 10 * 1024**2
PR_SET_PDEATHSIG = 1

_libc = ctypes.CDLL(None, use_errno=True) if sys.platform == "linux" else None


def end_with_parent(parent: int, number: int) -> None:
    """Ask the kernel to signal this process when its parent dies, even by SIGKILL (Linux)."""
    if _libc is not None:
        _libc.prctl(PR_SET_PDEATHSIG, number, 0, 0, 0)
        if os.getppid() != parent:  # it died before we asked
            os._exit(1)


@dataclass
class Child:
    """One program that is kept running. `stop_signals` are tried in turn before SIGKILL, `patience` seconds each."""

    name: str
    command: Sequence[str]
    environment: Mapping[str, str]
    log: Path
    restarts: bool = False
    stop_signals: Sequence[signal.Signals] = (signal.SIGTERM,)
    death_signal: signal.Signals = signal.SIGTERM  # what it gets when the supervisor itself is killed
    patience: float = 5.0
    descriptors: Sequence[int] = ()
    process: subprocess.Popen[bytes] | None = None
    _starts: deque[float] = field(default_factory=lambda: deque(maxlen=5))

    def start(self) -> None:
        if self.log.exists() and self.log.stat().st_size > LOG_BYTES:
            self.log.replace(self.log.with_suffix(".log.1"))
        self._starts.append(time.monotonic())
        supervisor = os.getpid()
        with self.log.open("ab") as log:
            self.process = subprocess.Popen(
                self.command,
                env=dict(self.environment),
                cwd=ROOT,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=subprocess.STDOUT,
                pass_fds=self.descriptors,
                # A session of its own: Ctrl-C in the terminal reaches the supervisor alone, which stops the children in order.
                start_new_session=True,
                preexec_fn=lambda: end_with_parent(supervisor, self.death_signal),  # noqa: PLW1509  the supervisor has one thread
            )

    def has_ended(self) -> bool:
        return self.process is not None and self.process.poll() is not None

    def may_restart(self) -> bool:
        """True while it has not been started five times within the last minute."""
        return self.restarts and (len(self._starts) < 5 or time.monotonic() - self._starts[0] > 60)

    def signal(self, number: signal.Signals) -> None:
        if self.process is not None and self.process.poll() is None:
            self.process.send_signal(number)

    def wait(self, seconds: float) -> bool:
        """True when it has ended within the time."""
        if self.process is None:
            return True
        try:
            self.process.wait(seconds)
        except subprocess.TimeoutExpired:
            return False
        return True

    def stop(self) -> None:
        for number in self.stop_signals:
            self.signal(number)
            if self.wait(self.patience):
                break
        self.kill_group()

    def kill_group(self) -> None:
        """End it and whatever it left behind in its process group (the pool of a worker that was killed)."""
        if self.process is None:
            return
        with contextlib.suppress(ProcessLookupError):
            os.killpg(self.process.pid, signal.SIGKILL)
        self.process.wait()

    def how_it_ended(self) -> str:
        code = self.process.returncode if self.process is not None else None
        if code is None:
            return "runs"
        return f"was killed by {signal.Signals(-code).name}" if code < 0 else f"ended with status {code}"

    def last_lines(self, count: int = 20) -> str:
        try:
            with self.log.open("rb") as log:
                log.seek(max(0, self.log.stat().st_size - 64 * 1024))
                return "\n".join(log.read().decode(errors="replace").splitlines()[-count:])
        except OSError:
            return ""
