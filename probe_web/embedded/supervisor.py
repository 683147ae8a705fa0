"""Starts the children in order, waits until they can serve, keeps them up, and stops them together."""

from __future__ import annotations

import signal
import threading
import time
import urllib.error
import urllib.request
from collections.abc import Callable
from types import FrameType

from probe_web.embedded.children import Child

TICK = 0.25


class Failed(Exception):
    """A child that nothing works without has ended, or readiness did not come; the message holds its last log lines."""


class Supervisor:
    """Owns the children of one data folder.

    `run` returns when somebody asked for the end (SIGINT, SIGTERM, SIGHUP) and raises Failed when a child gave up.
    """

    def __init__(self, say: Callable[[str], None]) -> None:
        self.children: list[Child] = []
        self._aside: dict[str, Child] = {}  # sentence to say when it fails → a child that nothing depends on
        self.asked_to_stop = threading.Event()
        self._say = say

    def take_signals(self) -> None:
        for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
            signal.signal(number, self._on_signal)

    def _on_signal(self, number: int, frame: FrameType | None) -> None:
        if self.asked_to_stop.is_set():
            # Asked twice: do not wait for anybody.
            for child in self.children:
                child.patience = 0.1
        self.asked_to_stop.set()

    def start(self, child: Child) -> None:
        child.start()
        self.children.append(child)

    def run_to_end(self, child: Child) -> None:
        """Run a child that is to end by itself (the migrations) and must end well."""
        self.start(child)
        while not child.has_ended() and not self.asked_to_stop.wait(0.05):
            pass
        if child.has_ended() and child.process is not None and child.process.returncode != 0:
            raise self._failure(child)
        if child.has_ended():
            self.children.remove(child)

    def start_aside(self, child: Child, complaint: str) -> None:
        """Start a child that ends by itself and that nothing depends on; `complaint` is said if it fails."""
        child.start()
        self._aside[complaint] = child

    def wait_until_ready(self, address: str, seconds: float) -> bool:
        """Wait for 200 of /readyz; False when the end was asked for meanwhile."""
        deadline = time.monotonic() + seconds
        while not self.asked_to_stop.wait(0.1):
            self.look_after()
            try:
                with urllib.request.urlopen(f"{address}/readyz", timeout=5):  # noqa: S310  our own address
                    return True
            except urllib.error.HTTPError as error:
                state = error.read().decode(errors="replace")
            except OSError as error:
                state = str(error)
            if time.monotonic() > deadline:
                logs = "\n".join(f"--- {child.log}\n{child.last_lines()}" for child in self.children)
                raise Failed(f"not ready after {seconds:.0f} s: {state}\n{logs}")
        return False

    def look_after(self) -> None:
        """Start again what has ended and may be; raise Failed for what may not."""
        for child in list(self.children):
            if not child.has_ended():
                continue
            if not child.may_restart():
                raise self._failure(child)
            child.kill_group()
            self._say(f"The {child.name} {child.how_it_ended()} and is started again; see {child.log}")
            child.start()
        for complaint, child in list(self._aside.items()):
            if child.has_ended():
                del self._aside[complaint]
                if child.process is not None and child.process.returncode != 0:
                    self._say(f"{complaint}; see {child.log}")

    def run(self) -> None:
        while not self.asked_to_stop.wait(TICK):
            self.look_after()

    def stop(self) -> None:
        """Stop everything, the last started first, so that nobody loses what it depends on."""
        self.asked_to_stop.set()
        for child in [*self._aside.values(), *reversed(self.children)]:
            child.stop()

    @staticmethod
    def _failure(child: Child) -> Failed:
        return Failed(f"the {child.name} {child.how_it_ended()}; the end of {child.log}:\n{child.last_lines()}")
