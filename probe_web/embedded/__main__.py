"""`python -m probe_web.embedded`: what ./run does after the packages are there. `--help` lists the options."""

from __future__ import annotations

# Until the supervisor takes the signals, Ctrl-C ends this process as it ends any other: without a traceback. Before the imports: they take
# a good part of that time.
import signal

if __name__ == "__main__":
    signal.signal(signal.SIGINT, signal.SIG_DFL)

import argparse
import os
import secrets
import shlex
import socket
import sys
from pathlib import Path

from probe_web.embedded import address, broker, migrations
from probe_web.embedded.children import ROOT, Child
from probe_web.embedded.lock import DataFolder
from probe_web.embedded.supervisor import Failed, Supervisor

READY_SECONDS = 90.0
MOST_WORKERS = 8  # that are started without being asked for: each takes memory for the dumps it has in hand
START_SECONDS = 90.0  # how long a second start waits for the first one's address


def say(line: str) -> None:
    print(line, flush=True)


def complain(line: str) -> None:
    print(f"probe_web: {line}", file=sys.stderr, flush=True)


def port_number(text: str) -> int:
    port = int(text)
    if not 0 < port < 65536:
        raise argparse.ArgumentTypeError("a port is a number from 1 to 65535")
    return port


def positive(text: str) -> int:
    number = int(text)
    if number < 1:
        raise argparse.ArgumentTypeError("at least 1")
    return number


def default_workers() -> int:
    """One a core, and one core left to the page and whoever looks at it."""
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    return max(1, min(MOST_WORKERS, cores - 1))


def options(arguments: list[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="./run", description="Start probe_web on this machine: broker, worker and web server.")
    parser.add_argument("--port", type=port_number, help="port to listen on (default: the first free one from 8000 on)")
    parser.add_argument("--host", default="127.0.0.1", help="address to listen on (default: 127.0.0.1, for this machine only)")
    parser.add_argument("--data", type=Path, help="folder for everything that is kept (default: var/ in the checkout)")
    parser.add_argument(
        "--workers",
        type=positive,
        default=os.environ.get("PROBE_WORKERS") or default_workers(),
        help="comparisons and parts of them that are computed at the same time (default: %(default)s on this machine)",
    )
    parser.add_argument("--key", help="with --host: the key that opens the lists to other machines (default: one is made and kept)")
    parser.add_argument("--no-example", action="store_true", help="do not load the example comparison")
    return parser.parse_args(arguments)


def kept_secret(file: Path) -> str:
    """The secret in `file`, made at the first start."""
    if not file.exists():
        descriptor = os.open(file, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
        with os.fdopen(descriptor, "w") as out:
            out.write(secrets.token_urlsafe(48))
    return file.read_text().strip()


class Local:
    """One local server: what it was asked for, and the children that answer it."""

    def __init__(self, asked: argparse.Namespace, data: Path, listener: socket.socket) -> None:
        self.asked = asked
        self.data = data
        self.listener = listener
        self.logs = data / "logs"
        self.port = int(listener.getsockname()[1])
        self.url = os.environ.get("PROBE_PUBLIC_URL") or address.url(asked.host, self.port)
        self.loopback_only = address.is_loopback(asked.host)
        self.lists_key = ""
        if not self.loopback_only:
            self.lists_key = asked.key or os.environ.get("PROBE_LISTS_KEY") or kept_secret(data / "lists-key")[:16]
        self.environment = self._environment()
        self.supervisor = Supervisor(say)

    def _environment(self) -> dict[str, str]:
        names = [os.environ.get("PROBE_HOST_NAMES", ""), *([] if self.loopback_only else address.own_names())]
        return {
            **os.environ,
            "PYTHONUNBUFFERED": "1",
            "DJANGO_SETTINGS_MODULE": "probe_web.settings",
            "PROBE_DATA_DIR": str(self.data),
            "PROBE_SECRET_KEY": os.environ.get("PROBE_SECRET_KEY") or kept_secret(self.data / "secret-key"),
            "PROBE_PUBLIC_URL": self.url,
            "PROBE_LOOPBACK_ONLY": "true" if self.loopback_only else "false",
            "PROBE_LISTS_KEY": self.lists_key,
            "PROBE_SHARE_COMMAND": self.share_command(),
            "PROBE_HOST_NAMES": ",".join(name for name in names if name),
        }

    def share_command(self) -> str:
        """The command that starts this server as it is now, but for others to reach."""
        words = ["./run", "--host", "0.0.0.0"]  # noqa: S104  (told, not bound to)
        if self.asked.port or self.port != address.DEFAULT_PORT:
            words += ["--port", str(self.port)]  # links keep their port
        if self.data != (ROOT / "var").resolve():
            words += ["--data", str(self.data)]
        if self.asked.workers != 1:
            words += ["--workers", str(self.asked.workers)]
        if self.asked.no_example:
            words.append("--no-example")
        return shlex.join(words)

    def child(self, name: str, *command: str, log: str = "", **more: object) -> Child:
        return Child(name, command, self.environment, self.logs / f"{log or name}.log", **more)  # type: ignore[arg-type]

    def manage(self, name: str, *command: str) -> Child:
        return self.child(name, sys.executable, str(ROOT / "manage.py"), *command)

    def broker(self) -> Child:
        socket_path = broker.prepare_socket(self.data)
        return self.child(
            "broker", *broker.command(broker.server_binary(), socket_path, self.data), restarts=True, death_signal=signal.SIGKILL
        )

    def worker(self) -> Child:
        child = self.child(
            "worker",
            *(sys.executable, "-m", "probe_web.worker", "--name", "worker@local", "--concurrency", str(self.asked.workers)),
            restarts=True,
            # First let it finish what is nearly done, then end its pool; what was cut off says "interrupted" and is offered again.
            stop_signals=(signal.SIGTERM, signal.SIGQUIT),
            death_signal=signal.SIGQUIT,
            patience=2.0,
        )
        # numpy's own threads would fight with the other processes for the same cores.
        child.environment = {**self.environment, "OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1"}
        return child

    def web(self) -> Child:
        descriptor = self.listener.fileno()
        return self.child(
            "web server",
            *(sys.executable, "-m", "gunicorn", "probe_web.wsgi", "--bind", f"fd://{descriptor}", "--name", "probe_web"),
            # Threads wait on slow uploads: with a few, a few slow senders would starve the page.
            *("--worker-class", "gthread", "--workers", "1", "--threads", "16", "--timeout", "120", "--graceful-timeout", "3"),
            *("--keep-alive", "15", "--no-control-socket"),
            log="web",
            death_signal=signal.SIGQUIT,
            descriptors=(descriptor,),
        )

    def start(self) -> bool:
        """Start everything; False when the end was asked for before it was ready."""
        (self.data / "incoming").mkdir(exist_ok=True)
        self.logs.mkdir(exist_ok=True)
        if not os.environ.get("REDIS_URL"):
            self.supervisor.start(self.broker())
        if not self.migrate():
            return False
        self.supervisor.start(self.worker())
        self.supervisor.start(self.web())
        return self.supervisor.wait_until_ready(self.here(), READY_SECONDS)

    def migrate(self) -> bool:
        """Bring the database up to date; False when the end was asked for meanwhile."""
        database = self.data / "probe_web.sqlite3"
        own_database = not os.environ.get("DATABASE_URL")
        if own_database and migrations.are_applied(ROOT, self.data, database):
            return True
        self.supervisor.run_to_end(self.manage("migrate", "migrate", "--no-input", "--verbosity", "0"))
        if self.supervisor.asked_to_stop.is_set():
            return False
        if own_database:
            migrations.remember(ROOT, self.data, database)
        return True

    def here(self) -> str:
        """The address that this machine itself reaches the server at."""
        host = str(self.listener.getsockname()[0])
        if address.is_any(host):
            host = "::1" if ":" in host else "127.0.0.1"
        return address.url(host, self.port)

    def welcome(self) -> None:
        say(f"\n  probe_web is ready at  {self.url}/\n")
        if self.loopback_only:
            say("  This address opens on this machine only; --host 0.0.0.0 lets teammates open it.")
        else:
            say("  Teammates open this address, and links carry it. Whoever has a link sees what it leads to.")
            say("  The lists of runs and comparisons are for this machine only; whoever opens this address sees them too:")
            say(f"    {self.url}/?key={self.lists_key}")
        say(f"  What it keeps is in {self.data}. Ctrl-C stops it.")

    def load_example(self) -> None:
        """Start loading the example, beside everything else: it goes through the upload and the worker like any comparison."""
        if self.asked.no_example:
            return
        child = self.manage("example", "load_example")
        child.restarts = False
        self.supervisor.start_aside(child, "The example comparison could not be loaded")


def main(arguments: list[str] | None = None) -> int:
    asked = options(arguments)
    data = (asked.data or Path(os.environ.get("PROBE_DATA_DIR") or ROOT / "var")).expanduser().resolve()
    folder = DataFolder(data)
    try:
        taken = folder.take()
    except OSError as error:
        complain(f"the data folder {data} cannot be used: {error.strerror}. Choose another one with --data DIR")
        return 1
    if not taken:
        running = folder.wait_for_address(START_SECONDS)
        if running is None:
            complain(f"another process holds {data} and gives no address; see {data / 'logs'}")
            return 1
        say(f"probe_web is already running on {data}:  {running}/")
        return 0
    try:
        listener = address.listen(asked.host, asked.port)
    except (address.PortTaken, address.UnknownHost) as error:
        complain(f"{error}. Choose another one with --port or --host")
        return 1
    local = Local(asked, data, listener)
    local.supervisor.take_signals()
    try:
        if local.start():
            folder.announce(local.url)
            local.welcome()
            local.load_example()
            local.supervisor.run()
    except (Failed, broker.NoBroker) as error:
        complain(str(error))
        return 1
    finally:
        local.supervisor.stop()
        listener.close()
    say("probe_web has stopped.")
    return 0


if __name__ == "__main__":
    sys.exit(main())
