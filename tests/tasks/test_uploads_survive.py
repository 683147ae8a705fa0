"""Uploads through a real web server: slow ones, broken ones, and a server that is killed under them."""

from __future__ import annotations

import hashlib
import os
import signal
import socket
import time
from contextlib import ExitStack
from urllib.parse import urlsplit

import psutil
import pytest

from tests.live import Stack, until

pytestmark = pytest.mark.timeout(240)

TUS = {"Tus-Resumable": "1.0.0"}


def begin(stack: Stack, length: int) -> str:
    answer = stack.call("POST", "/api/v1/uploads/", b"", {**TUS, "Upload-Length": str(length), "Upload-Metadata": "filename ZHVtcC56aXA="})
    assert answer.status == 201, answer
    return answer.headers["Location"]


def offset(stack: Stack, url: str) -> int:
    return int(stack.call("HEAD", url, headers=TUS).headers["Upload-Offset"])


def open_patch(stack: Stack, url: str, at: int, length: int) -> socket.socket:
    """A PATCH whose headers are sent and whose body is not: the caller sends as much of it as it likes."""
    address = urlsplit(stack.url)
    link = socket.create_connection((address.hostname, address.port), timeout=60)
    head = [f"PATCH {url} HTTP/1.1", f"Host: {address.netloc}", "Tus-Resumable: 1.0.0", f"Upload-Offset: {at}", f"Content-Length: {length}"]
    head += ["Content-Type: application/offset+octet-stream", "Connection: close"]
    link.sendall("\r\n".join([*head, "", ""]).encode())
    return link


def patch(stack: Stack, url: str, at: int, content: bytes):
    return stack.call("PATCH", url, content, {**TUS, "Upload-Offset": str(at), "Content-Type": "application/offset+octet-stream"})


def test_an_upload_goes_on_where_it_stood_after_its_server_was_killed(start_stack):
    stack = start_stack()
    content = os.urandom(12 * 1024**2)
    url = begin(stack, len(content))
    assert patch(stack, url, 0, content[: 2 * 1024**2]).status == 204
    with open_patch(stack, url, 2 * 1024**2, 10 * 1024**2) as link:
        link.sendall(content[2 * 1024**2 : 7 * 1024**2 + 12345])
        until("the server has written some of it", lambda: offset(stack, url) >= 6 * 1024**2)
        web = stack.child("web server")
        for process in [*web.children(recursive=True), web]:
            process.send_signal(signal.SIGKILL)
        until("the server is gone", lambda: not web.is_running() or web.status() == psutil.STATUS_ZOMBIE)
    stack.stop()
    again = start_stack(data=stack.data)
    at = offset(again, url)
    assert 6 * 1024**2 <= at <= 7 * 1024**2 + 12345
    assert patch(again, url, at, content[at:]).status == 204
    described = again.call("GET", url).json()
    assert described["sha256"] == hashlib.sha256(content).hexdigest()
    stored = again.data / "blobs" / described["sha256"][:2] / described["sha256"]
    assert hashlib.sha256(stored.read_bytes()).hexdigest() == described["sha256"]


def test_a_dropped_connection_keeps_what_arrived_and_frees_the_upload(live_stack):
    content = os.urandom(3 * 1024**2)
    url = begin(live_stack, len(content))
    with open_patch(live_stack, url, 0, len(content)) as link:
        link.sendall(content[:1_500_000])
    until("what arrived is kept", lambda: offset(live_stack, url) == 1_500_000)
    until("the lock is gone", lambda: patch(live_stack, url, 1_500_000, content[1_500_000:]).status == 204)
    assert live_stack.call("GET", url).json()["sha256"] == hashlib.sha256(content).hexdigest()


def test_eight_slow_uploads_do_not_keep_the_page_waiting(live_stack):
    with ExitStack() as links:
        slow = [links.enter_context(open_patch(live_stack, begin(live_stack, 10**6), 0, 10**6)) for _ in range(8)]
        took = []
        for _ in range(10):
            for link in slow:
                link.sendall(b"x" * 5_000)  # 50 kB/s each
            begun = time.monotonic()
            assert live_stack.get("/api/v1/about/").status == 200
            took.append(time.monotonic() - begun)
            time.sleep(0.1)
    assert sorted(took)[5] < 0.25, took
    assert max(took) < 2, took


def test_an_upload_that_another_request_writes_is_locked(live_stack):
    url = begin(live_stack, 1000)
    with open_patch(live_stack, url, 0, 1000) as link:
        link.sendall(b"x" * 10)
        # At a wrong offset, so that asking before the first request holds the lock writes nothing.
        locked = until("the first request holds the lock", lambda: (a := patch(live_stack, url, 999, b"y")).status == 423 and a)
        assert locked.json()["code"] == "upload_locked"


def test_a_page_of_another_site_may_not_post_here(live_stack):
    for headers in ({"Origin": "http://evil.example"}, {"Sec-Fetch-Site": "cross-site"}):
        answer = live_stack.call("POST", "/api/v1/uploads/", b"", {**TUS, "Upload-Length": "1", **headers})
        assert (answer.status, answer.json()["code"]) == (403, "foreign_origin")
