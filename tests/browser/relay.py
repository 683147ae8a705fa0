"""A line between the browser and the server that a test can cut, as a cable or a tunnel is cut."""

from __future__ import annotations

import contextlib
import socket
import threading
from urllib.parse import urlsplit


class Relay:
    """Passes connections on to a server. `url` is its own address.

    `cut` drops everything under way and refuses what is new; `mend` ends that.
    """

    def __init__(self, target: str) -> None:
        address = urlsplit(target)
        self.target = (str(address.hostname), int(address.port or 80))
        self.port = 0
        self.listener: socket.socket | None = None
        self.under_way: set[socket.socket] = set()
        self.lock = threading.Lock()
        self.mend()

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    def mend(self) -> None:
        listener = socket.create_server(("127.0.0.1", self.port))
        self.port = listener.getsockname()[1]
        self.listener = listener
        threading.Thread(target=self._accept, args=(listener,), daemon=True).start()

    def cut(self) -> None:
        with self.lock:
            open_sockets, self.under_way = [*self.under_way], set()
        if self.listener is not None:
            close(self.listener)
            self.listener = None
        for one in open_sockets:
            close(one)

    def _accept(self, listener: socket.socket) -> None:
        while True:
            try:
                browser, _ = listener.accept()
                server = socket.create_connection(self.target, timeout=10)
            except OSError:
                return
            server.settimeout(None)
            with self.lock:
                self.under_way |= {browser, server}
            for source, sink in ((browser, server), (server, browser)):
                threading.Thread(target=self._pass_on, args=(source, sink), daemon=True).start()

    def _pass_on(self, source: socket.socket, sink: socket.socket) -> None:
        with contextlib.suppress(OSError):
            while block := source.recv(1 << 16):
                sink.sendall(block)
        for one in (source, sink):
            close(one)
        with self.lock:
            self.under_way -= {source, sink}


def close(one: socket.socket) -> None:
    # A thread that waits in recv or accept wakes up from a shutdown and not from a close.
    with contextlib.suppress(OSError):
        one.shutdown(socket.SHUT_RDWR)
    one.close()
