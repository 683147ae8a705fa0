"""A stretch of network between a client and a real server: it counts, and breaks where it is told to."""

from __future__ import annotations

import contextlib
import socket
import ssl
import threading
from collections.abc import Iterator, Sequence


class Relay:
    """Forwards connections on a loopback port. ``sent`` counts bytes from client to server over all connections; at each number in
    ``cuts`` it drops the connection that reached it. ``first_lines`` are the request lines, ``via`` is put into every request as headers
    (a proxy's), ``tls`` is a server context: clients then speak https."""

    def __init__(self, port: int, cuts: Sequence[int] = (), via: str = "", tls: ssl.SSLContext | None = None) -> None:
        self.target = port
        self.cuts = sorted(cuts)
        self.via = via
        self.tls = tls
        self.sent = 0
        self.dropped = 0
        self.first_lines: list[str] = []
        self.listener = socket.create_server(("127.0.0.1", 0))
        self.port = int(self.listener.getsockname()[1])
        self.url = f"{'https' if tls else 'http'}://127.0.0.1:{self.port}"
        self.lock = threading.Lock()
        self.threads = [threading.Thread(target=self._accept, daemon=True)]
        self.threads[0].start()

    def close(self) -> None:
        with contextlib.suppress(OSError):
            self.listener.shutdown(socket.SHUT_RDWR)
        self.listener.close()
        for thread in self.threads:
            thread.join(10)

    def _accept(self) -> None:
        while True:
            try:
                client, _ = self.listener.accept()
            except OSError:
                return
            thread = threading.Thread(target=self._serve, args=(client,), daemon=True)
            self.threads.append(thread)
            thread.start()

    def _serve(self, client: socket.socket) -> None:
        with contextlib.suppress(OSError), contextlib.ExitStack() as both:
            both.enter_context(client)
            if self.tls:
                client = both.enter_context(self.tls.wrap_socket(client, server_side=True))
            server = both.enter_context(socket.create_connection(("127.0.0.1", self.target), timeout=120))
            back = threading.Thread(target=self._copy_back, args=(server, client), daemon=True)
            back.start()
            self._copy_there(client, server)
            back.join(60)

    def _copy_there(self, client: socket.socket, server: socket.socket) -> None:
        head = b""
        while b"\r\n\r\n" not in head:
            block = client.recv(65536)
            if not block:
                return
            head += block
        line, _, rest = head.partition(b"\r\n")
        self.first_lines.append(line.decode())
        block = line + b"\r\n" + (f"{self.via}\r\n".encode() if self.via else b"") + rest
        while block:
            with self.lock:
                cut = bool(self.cuts) and self.sent + len(block) > self.cuts[0]
                if cut:
                    block = block[: max(self.cuts.pop(0) - self.sent, 0)]
                    self.dropped += 1
                self.sent += len(block)
            server.sendall(block)
            if cut:
                for end in (client, server):
                    with contextlib.suppress(OSError):
                        end.shutdown(socket.SHUT_RDWR)
                return
            block = client.recv(262144)
        with contextlib.suppress(OSError):
            server.shutdown(socket.SHUT_WR)

    @staticmethod
    def _copy_back(server: socket.socket, client: socket.socket) -> None:
        with contextlib.suppress(OSError):
            while block := server.recv(65536):
                client.sendall(block)
            client.shutdown(socket.SHUT_WR)


@contextlib.contextmanager
def relay(port: int, cuts: Sequence[int] = (), via: str = "", tls: ssl.SSLContext | None = None) -> Iterator[Relay]:
    between = Relay(port, cuts, via, tls)
    try:
        yield between
    finally:
        between.close()
