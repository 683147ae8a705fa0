"""./run as a person uses it, by real processes: ready, Ctrl-C, killed children, a folder in use, a taken port."""

from __future__ import annotations

import contextlib
import re
import signal
import socket
import subprocess
import sys
import time
from pathlib import Path

import psutil
import pytest

from tests.conftest import StartStack
from tests.live import ROOT, Stack, free_port, until

pytestmark = pytest.mark.timeout(240)


def all_gone(processes: list[psutil.Process]) -> bool:
    return not [process for process in processes if process.is_running() and process.status() != psutil.STATUS_ZOMBIE]


def start_again(stack: Stack, *arguments: str) -> subprocess.CompletedProcess[str]:
    """A second supervisor, to its end."""
    command = [sys.executable, "-m", "probe_web.embedded", *arguments]
    return subprocess.run(command, env=stack.environment, capture_output=True, text=True, timeout=60, check=False)


def test_it_serves_and_computes_and_says_where(live_stack: Stack) -> None:
    assert re.fullmatch(r"http://127\.0\.0\.1:\d+", live_stack.url)
    assert live_stack.get("/readyz").json()["parts"] == {"database": "ok", "storage": "ok", "broker": "ok", "worker": "ok"}
    about = live_stack.get("/api/v1/about/").json()
    assert about["public_url"] == live_stack.url
    assert about["loopback_only"] is True


def test_the_broker_listens_on_no_port(live_stack: Stack) -> None:
    assert [link for link in live_stack.child("broker").net_connections("inet") if link.status == psutil.CONN_LISTEN] == []
    assert (live_stack.data / "broker.sock").is_socket()


def test_secrets_of_the_data_folder_are_its_owners_alone(live_stack: Stack) -> None:
    assert (live_stack.data / "secret-key").stat().st_mode & 0o077 == 0


def test_a_second_start_on_a_folder_in_use_prints_the_address_and_ends_with_0(live_stack: Stack) -> None:
    second = start_again(live_stack, "--data", str(live_stack.data))
    assert second.returncode == 0
    assert live_stack.url in second.stdout
    assert live_stack.get("/readyz").status == 200


def test_a_taken_port_that_was_asked_for_is_said_in_one_line(live_stack: Stack, tmp_path: Path) -> None:
    port = live_stack.url.rsplit(":", 1)[1]
    second = start_again(live_stack, "--data", str(tmp_path / "other"), "--port", port)
    assert second.returncode == 1
    assert second.stderr == f"probe_web: port {port} of 127.0.0.1 is in use. Choose another one with --port or --host\n"


def test_a_data_folder_that_cannot_be_made_is_said_in_one_line(live_stack: Stack, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    second = start_again(live_stack, "--data", str(tmp_path / "file" / "data"))
    assert second.returncode == 1
    assert second.stderr.startswith("probe_web: the data folder ")
    assert second.stderr.count("\n") == 1


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_a_signal_stops_every_child_and_frees_the_folder_and_the_port(start_stack: StartStack, number: signal.Signals) -> None:
    stack = start_stack()
    family = stack.family()
    assert len(family) >= 5  # broker, worker and its pool, web server and its worker
    assert stack.stop(number) == 0
    assert all_gone(family)
    with socket.socket() as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        probe.bind(("127.0.0.1", int(stack.url.rsplit(":", 1)[1])))
    assert "probe_web has stopped." in stack.output.read_text()


@pytest.mark.parametrize("seconds", [0.05, 0.1, 0.15, 0.2, 0.3, 0.4, 0.6])
def test_ctrl_c_in_the_first_moments_ends_it_without_a_traceback(tmp_path: Path, live_stack: Stack, seconds: float) -> None:
    command = [sys.executable, "-m", "probe_web.embedded", "--data", str(tmp_path / "data"), "--no-example", "--port", str(free_port())]
    process = subprocess.Popen(
        command, env=live_stack.environment, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, start_new_session=True
    )
    time.sleep(seconds)
    process.send_signal(signal.SIGINT)
    said, _ = process.communicate(timeout=60)
    assert "Traceback" not in said
    assert "KeyboardInterrupt" not in said


def test_children_do_not_outlive_a_killed_supervisor(start_stack: StartStack) -> None:
    stack = start_stack()
    family = stack.family()
    stack.stop(signal.SIGKILL)
    until("every child has ended", lambda: all_gone(family), seconds=15)


def test_a_start_after_a_killed_supervisor_finds_no_stale_lock(start_stack: StartStack, tmp_path: Path) -> None:
    stack = start_stack(data=tmp_path / "data")
    family = stack.family()
    stack.stop(signal.SIGKILL)
    until("every child has ended", lambda: all_gone(family), seconds=15)
    again = start_stack(data=tmp_path / "data")
    assert again.get("/readyz").status == 200


def test_two_data_folders_run_at_once_and_each_has_its_own_broker(live_stack: Stack, start_stack: StartStack) -> None:
    other = start_stack()
    assert other.url != live_stack.url
    assert other.child("broker").pid != live_stack.child("broker").pid
    assert live_stack.get("/readyz").status == other.get("/readyz").status == 200


@pytest.mark.parametrize("name", ["broker", "worker"])
def test_a_killed_broker_or_worker_is_started_again_while_the_page_serves(start_stack: StartStack, name: str) -> None:
    stack = start_stack()
    before = stack.child(name)
    pool = before.children(recursive=True)
    before.kill()
    until(f"a new {name}", lambda: _child_or_none(stack, name, before.pid))
    until("the pool of the old one is gone", lambda: all_gone(pool))
    until("it computes again", lambda: stack.get("/readyz").status == 200)
    assert stack.get("/healthz").status == 200
    assert f"The {name} was killed by SIGKILL and is started again" in stack.output.read_text()


def _child_or_none(stack: Stack, name: str, not_this: int) -> psutil.Process | None:
    with contextlib.suppress(LookupError):
        found = stack.child(name)
        return found if found.pid != not_this else None
    return None


def test_a_killed_web_server_stops_everything_with_its_last_lines(start_stack: StartStack) -> None:
    stack = start_stack()
    family = stack.family()
    stack.child("web server").kill()
    assert stack.process is not None
    assert stack.process.wait(30) == 1
    assert all_gone(family)
    said = stack.output.read_text()
    assert "the web server was killed by SIGKILL" in said
    assert "Booting worker" in said


def test_migrations_that_fail_are_said_with_their_log(live_stack: Stack, tmp_path: Path) -> None:
    data = tmp_path / "data"
    data.mkdir()
    (data / "probe_web.sqlite3").write_bytes(b"this is no database, and long enough to be seen as none" * 50)
    second = start_again(live_stack, "--data", str(data), "--port", str(free_port()))
    assert second.returncode == 1
    assert "the migrate ended with status 1" in second.stderr
    assert "file is not a database" in second.stderr


@pytest.mark.parametrize("name", [f"{('long name ' * 8).strip()}/训练与推理", "a b#1%20&?ü"])
def test_long_and_foreign_data_paths_work(start_stack: StartStack, tmp_path_factory: pytest.TempPathFactory, name: str) -> None:
    stack = start_stack(data=tmp_path_factory.mktemp("d") / name)
    assert stack.get("/readyz").status == 200


def test_on_another_loopback_address_links_still_open_on_this_machine_only(start_stack: StartStack) -> None:
    stack = start_stack("--host", "127.0.0.2")
    assert stack.url.startswith("http://127.0.0.2:")
    about = stack.get("/api/v1/about/").json()
    assert (about["public_url"], about["loopback_only"]) == (stack.url, True)
    assert "opens on this machine only" in stack.output.read_text()


def test_eight_slow_uploads_do_not_starve_the_page(live_stack: Stack) -> None:
    """Each sends 50 kB/s for as long as the page is asked for."""
    host, port = live_stack.url.removeprefix("http://").split(":")
    links = []
    for _ in range(8):
        link = socket.create_connection((host, int(port)))
        head = f"POST /api/v1/runs/ HTTP/1.1\r\nHost: {host}:{port}\r\nContent-Length: 10000000\r\n"
        head += "Content-Type: multipart/form-data; boundary=b\r\n\r\n"
        link.sendall(head.encode() + b'--b\r\nContent-Disposition: form-data; name="files"; filename="a.zip"\r\n\r\n')
        links.append(link)
    slowest = 0.0
    for _ in range(20):
        for link in links:
            link.sendall(b"x" * 5000)
        began = time.monotonic()
        assert live_stack.get("/healthz").status == 200
        slowest = max(slowest, time.monotonic() - began)
        time.sleep(0.1)
    for link in links:
        link.close()
    assert slowest < 1.0


def test_the_command_line_refuses_what_makes_no_sense() -> None:
    for arguments in (["--port", "0"], ["--port", "70000"], ["--workers", "0"], ["--unknown"]):
        command = [sys.executable, "-m", "probe_web.embedded", *arguments]
        assert subprocess.run(command, cwd=ROOT, capture_output=True, check=False).returncode == 2
