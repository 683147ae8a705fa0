"""The command as a process, against a real server and through a network that breaks."""

from __future__ import annotations

import io
import json
import os
import shutil
import signal
import ssl
import subprocess
import sys
import time
import zipfile
from pathlib import Path
from urllib.parse import urlsplit

import pytest

from compare import push
from tests.conftest import _starter
from tests.live import ROOT, Stack, free_port, missing, until
from tests.relay import relay
from tests.rooms import CORPUS

pytestmark = pytest.mark.timeout(280)

TRAIN, INFER, DOWN2 = (CORPUS / f"{name}.zip" for name in ("q2_train_stat", "q2_infer_stat", "q2_infer_down2_stat"))
MEGABYTE = 1 << 20


class Result:
    def __init__(self, done: subprocess.CompletedProcess[str]) -> None:
        self.status = done.returncode
        self.lines = done.stdout.splitlines()
        self.said = done.stderr

    def __repr__(self) -> str:
        return f"<{self.status} {self.lines} {self.said}>"


@pytest.fixture
def home(tmp_path) -> Path:
    return tmp_path / "home"


def command(*arguments: object) -> list[str]:
    return [sys.executable, "-m", "compare.push", *map(str, arguments)]


def surroundings(home: Path, **more: str) -> dict[str, str]:
    return {"PATH": os.environ["PATH"], "HOME": str(home), "XDG_STATE_HOME": str(home), "PYTHONPATH": str(ROOT), **more}


@pytest.fixture
def run(home):
    """Run the command to its end, in a home of its own."""

    def run(*arguments: object, **environment: str) -> Result:
        environment = surroundings(home, **environment)
        return Result(subprocess.run(command(*arguments), env=environment, capture_output=True, text=True, cwd="/", check=False))

    return run


def port_of(stack) -> int:
    return int(urlsplit(stack.url).port or 0)


def slug_of(result: Result) -> str:
    return result.lines[0].rsplit("/", 1)[-1]


def heavy(folder: Path, megabytes: int) -> Path:
    """A dump with a tensor file that does not shrink."""
    zipfile.ZipFile(TRAIN).extractall(folder)
    tensor = folder / "step0" / "rank0" / "dump_tensor_data" / "a.pt"
    tensor.parent.mkdir()
    with tensor.open("wb") as out:
        for _ in range(megabytes):
            out.write(os.urandom(MEGABYTE))
    return folder


def test_the_link_is_all_that_standard_output_holds(run, live_stack):
    result = run(TRAIN, DOWN2, "--server", live_stack.url, "--name", "a name of mine")
    assert result.status == 0, result
    (link,) = result.lines
    assert link == f"{live_stack.url}/c/{slug_of(result)}"
    found = live_stack.get(f"/api/v1/comparisons/{slug_of(result)}/").json()
    assert (found["name"], found["left"]["name"], found["right"]["name"]) == ("a name of mine", "q2_train_stat", "q2_infer_down2_stat")


@pytest.mark.parametrize(
    ("sides", "options", "status", "word"),
    [
        ((TRAIN, DOWN2), (), 1, "down_proj"),
        ((TRAIN, INFER), (), 0, "Consistent"),
        ((TRAIN, INFER), ("--exact",), 1, ""),
        ((TRAIN, TRAIN), (), 0, "Identical"),
        ((TRAIN, DOWN2), ("--option", "step=0", "--option", "rank=0:0"), 1, "down_proj"),
    ],
)
def test_waiting_says_the_verdict_and_ends_with_its_status(run, live_stack, sides, options, status, word):
    result = run(*sides, "--server", live_stack.url, "--wait", *options)
    assert result.status == status, result
    assert word in result.lines[1]


def test_a_reader_of_chinese_gets_the_sentence_in_chinese(run, live_stack):
    result = run(TRAIN, DOWN2, "--server", live_stack.url, "--wait", LANG="zh_CN.UTF-8")
    assert result.status == 1, result
    assert any("一" <= letter <= "鿿" for letter in result.lines[1])


def test_sides_that_cannot_be_compared_end_in_3(run, live_stack, tmp_path):
    other = tmp_path / "dump.json"
    with zipfile.ZipFile(TRAIN) as archive:
        document = json.loads(archive.read("step0/rank0/dump.json"))
    document["data"] = {key.replace("model", "strange"): value for key, value in document["data"].items() if "backward" in key}
    other.write_text(json.dumps(document))
    result = run(TRAIN, other, "--server", live_stack.url, "--wait")
    assert result.status == 3, result


def test_bytes_that_are_no_dump_end_in_2_with_the_place(run, live_stack, tmp_path):
    broken = tmp_path / "broken.zip"
    broken.write_bytes(b"PK\3\4 and then nothing")
    result = run(TRAIN, broken, "--server", live_stack.url, "--wait")
    assert result.status == 2, result
    assert "broken.zip" in result.said.splitlines()[-1]


@pytest.mark.parametrize(
    ("arguments", "word"),
    [
        ((TRAIN, INFER, "--server", "http://127.0.0.1:1"), "cannot be reached"),
        ((TRAIN, INFER, "--server", "ftp://127.0.0.1"), "no address"),
        ((TRAIN, INFER, "--server", "127.0.0.1:1"), "cannot be reached"),
        ((TRAIN, "/nowhere", "--server", "http://127.0.0.1:1"), "/nowhere: the file does not exist"),
        ((TRAIN, INFER, "--server", "http://127.0.0.1:1", "--option", "step"), "NAME=VALUE"),
        ((TRAIN, INFER), "--server is missing"),
        ((TRAIN,), "required: RIGHT"),
    ],
)
def test_a_mistake_is_one_sentence_and_a_2(run, arguments, word):
    result = run(*arguments)
    assert result.status == 2, result
    assert word in result.said.splitlines()[-1]
    assert "Traceback" not in result.said
    assert result.lines == []


@pytest.mark.parametrize("option", ["step=x", "nonsense=1", "mapping=x"])
def test_an_option_that_the_server_does_not_take_says_so(run, live_stack, option):
    result = run(TRAIN, INFER, "--server", live_stack.url, "--option", option)
    assert result.status == 2, result
    assert option.split("=")[0] in result.said.splitlines()[-1]


def test_two_large_logs_are_sent_as_their_configurations_and_compared(run, live_stack, tmp_path):
    progress = "(TaskRunner pid=7) step:1 - actor/loss:0.25\n" * 100_000
    for name, nodes in (("left.log", 1), ("right.txt", 2)):
        printed = "(TaskRunner pid=7) {'actor_rollout_ref': {'actor': {'ppo_mini_batch_size': 64}},\n(TaskRunner pid=7)  "
        (tmp_path / name).write_text(f"{printed}'trainer': {{'nnodes': {nodes}}}}}\n{progress}")
    with relay(port_of(live_stack)) as network:
        result = run(tmp_path / "left.log", tmp_path / "right.txt", "--server", network.url, "--wait")
        assert network.sent < 200_000
    assert result.status == 3, result
    assert result.lines[-1] == "Not comparable — no dumps, configurations alone: 1 setting differs, it does not matter"
    assert "left.log: 524.3 kB of 4.4 MB: its beginning and the configuration in it" in result.said


def test_what_the_server_holds_is_not_sent_again(run, live_stack, tmp_path):
    folder = heavy(tmp_path / "train", 4)
    with relay(port_of(live_stack)) as network:
        first = run(folder, INFER, "--server", network.url, "--tensors")
        assert first.status == 0, first
        assert network.sent > 4 * MEGABYTE
        before = network.sent
        again = run(folder, INFER, "--server", network.url, "--tensors")
        assert "there already" in again.said
        # Somebody else, who never sent it: this machine is known to the server, so its sum is enough.
        other = run(folder, INFER, "--server", network.url, "--tensors", XDG_STATE_HOME=str(tmp_path / "other"))
        assert "there already" in other.said
        assert (again.status, other.status) == (0, 0)
        assert network.sent - before < 20_000


def test_a_stranger_cannot_ask_by_sum_what_the_server_holds(run, live_stack, tmp_path):
    folder = heavy(tmp_path / "train", 2)
    assert run(folder, INFER, "--server", live_stack.url, "--tensors").status == 0
    with relay(port_of(live_stack), via="X-Forwarded-For: 10.0.0.9") as network:
        stranger = run(folder, INFER, "--server", network.url, "--tensors", XDG_STATE_HOME=str(tmp_path / "other"))
        assert stranger.status == 0, stranger
        assert "there already" not in stranger.said
        assert network.sent > 2 * MEGABYTE


def test_tensors_stay_where_they_are_unless_asked_for(run, live_stack, tmp_path):
    with relay(port_of(live_stack)) as network:
        result = run(heavy(tmp_path / "train", 5), INFER, "--server", network.url)
        assert result.status == 0, result
        assert "5.2 MB of tensor files stay here" in result.said
        assert network.sent < MEGABYTE


def test_it_goes_on_after_connections_that_drop(run, live_stack, tmp_path):
    folder = heavy(tmp_path / "train", 60)
    with relay(port_of(live_stack), cuts=[10 * MEGABYTE, 41 * MEGABYTE]) as network:
        result = run(folder, INFER, "--server", network.url, "--tensors", "--wait")
        assert result.status == 0, result
        assert network.dropped == 2
        # What was on its way when a connection dropped is sent again, and no more.
        assert network.sent < 63 * MEGABYTE


def test_it_goes_on_through_a_restart_of_the_server(start_stack, home, tmp_path):
    port = free_port()
    stack = start_stack("--port", str(port))
    folder = heavy(tmp_path / "train", 120)
    with relay(port) as network, (tmp_path / "said").open("w+") as said:
        arguments = command(folder, INFER, "--server", network.url, "--tensors", "--wait")
        process = subprocess.Popen(arguments, env=surroundings(home), stdout=subprocess.PIPE, stderr=said, text=True)
        until("a third is there", lambda: network.sent > 40 * MEGABYTE, every=0.01)
        stack.stop()
        start_stack("--port", str(port), data=stack.data)
        out, _ = process.communicate(timeout=120)
        assert process.returncode == 0, Path(said.name).read_text()
        assert "Consistent" in out
        assert network.sent < 2 * 120 * MEGABYTE


def test_the_same_command_goes_on_after_it_was_killed(run, home, live_stack, tmp_path):
    folder = heavy(tmp_path / "train", 100)
    with relay(port_of(live_stack)) as network:
        arguments = (folder, INFER, "--server", network.url, "--tensors")
        process = subprocess.Popen(command(*arguments), env=surroundings(home), stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        until("a part is there", lambda: network.sent > 40 * MEGABYTE, every=0.01)
        process.kill()
        process.communicate()
        before = network.sent
        assert (home / "probe_web" / "push.json").stat().st_mode & 0o077 == 0, "an upload's id is a secret"
        again = run(*arguments)
        assert again.status == 0, again
        assert " MB of 104.9 MB are there already" in again.said
        assert network.sent - before < 85 * MEGABYTE


def test_ctrl_c_ends_it_in_one_sentence(home, live_stack, tmp_path):
    with relay(port_of(live_stack)) as network:
        process = subprocess.Popen(
            command(heavy(tmp_path / "train", 150), INFER, "--server", network.url, "--tensors"),
            env=surroundings(home),
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            # Where the tests run in the background, their children would ignore it.
            preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),
        )
        until("something is there", lambda: network.sent > 5 * MEGABYTE, every=0.01)
        process.send_signal(signal.SIGINT)
        _, said = process.communicate(timeout=20)
    assert process.returncode == 2
    assert "stopped" in said.splitlines()[-1]
    assert "Traceback" not in said


def test_a_server_that_stays_away_is_given_up_with_what_to_do(home, start_stack, tmp_path):
    stack = start_stack()
    arguments = command(heavy(tmp_path / "train", 150), INFER, "--server", stack.url, "--tensors", "--patience", "2")
    process = subprocess.Popen(arguments, env=surroundings(home), stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    until("something is there", lambda: any(p.stat().st_size > 0 for p in (stack.data / "uploads").glob("*.part")), every=0.01)
    stack.stop()
    _, said = process.communicate(timeout=60)
    assert process.returncode == 4, said
    assert "Run the same command again" in said.splitlines()[-1]


def test_the_proxies_of_the_environment_are_used(run, live_stack):
    with relay(port_of(live_stack)) as proxy:
        result = run(TRAIN, INFER, "--server", live_stack.url, http_proxy=proxy.url)
        assert result.status == 0, result
        assert proxy.first_lines
        assert all(f" {live_stack.url}/" in line for line in proxy.first_lines)
        seen = len(proxy.first_lines)
        assert run(TRAIN, INFER, "--server", live_stack.url, http_proxy=proxy.url, no_proxy="127.0.0.1").status == 0
        assert len(proxy.first_lines) == seen


def test_certificates_are_checked(run, live_stack, tmp_path):
    openssl = shutil.which("openssl")
    if openssl is None:
        missing("openssl", "openssl")
    words = [
        *("req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "2", "-subj", "/CN=127.0.0.1", "-addext", "subjectAltName=IP:127.0.0.1")
    ]
    subprocess.run([str(openssl), *words, "-keyout", tmp_path / "key", "-out", tmp_path / "cert"], check=True, capture_output=True)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(tmp_path / "cert", tmp_path / "key")
    with relay(port_of(live_stack), tls=context) as network:
        refused = run(TRAIN, INFER, "--server", network.url)
        assert refused.status == 2, refused
        assert "SSL_CERT_FILE" in refused.said
        trusted = run(TRAIN, INFER, "--server", network.url, SSL_CERT_FILE=str(tmp_path / "cert"))
        assert trusted.status == 0, trusted


def test_something_that_is_no_probe_web_is_told_apart(run, tmp_path):
    port = free_port()
    process = subprocess.Popen(
        [sys.executable, "-m", "http.server", str(port), "--bind", "127.0.0.1"], cwd=tmp_path, stderr=subprocess.DEVNULL
    )
    try:
        result = until("it answers", lambda: "reached" not in (r := run(TRAIN, INFER, "--server", f"http://127.0.0.1:{port}")).said and r)
        assert result.status == 2
        assert result.said.startswith("push: ")
    finally:
        process.kill()
        process.wait()


@pytest.fixture(scope="module")
def guarded(tmp_path_factory):
    """One server that asks senders from elsewhere for a token."""
    started: list[Stack] = []
    yield _starter(tmp_path_factory.mktemp("guarded"), started)(PROBE_UPLOAD_REQUIRES_TOKEN="true")
    for stack in started:
        stack.stop()


class TestToken:
    def manage(self, stack, *words: str) -> str:
        environment = {**stack.environment, "PROBE_DATA_DIR": str(stack.data)}
        done = subprocess.run([sys.executable, ROOT / "manage.py", *words], env=environment, capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stderr
        return done.stdout.strip()

    def test_from_another_machine_a_token_is_needed_and_a_revoked_one_is_refused(self, run, guarded):
        with relay(port_of(guarded), via="X-Forwarded-For: 10.0.0.9") as elsewhere:
            without = run(TRAIN, DOWN2, "--server", elsewhere.url)
            assert without.status == 2
            assert "only with a token" in without.said
            token = self.manage(guarded, "token", "training host")
            arguments = (TRAIN, DOWN2, "--server", elsewhere.url, "--wait")
            assert run(*arguments, "--token", token).status == 1
            assert run(*arguments, PROBE_TOKEN=token).status == 1
            listed = self.manage(guarded, "token", "--list")
            assert listed.startswith("training host: in force")
            assert "last used never" not in listed
            assert token not in listed
            self.manage(guarded, "token", "--revoke", "training host")
            revoked = run(*arguments, "--token", token)
            assert revoked.status == 2
            assert "revoked" in revoked.said
        assert run(TRAIN, DOWN2, "--server", guarded.url).status == 0, "this machine itself needs none"

    def test_the_token_is_nowhere_in_what_the_server_keeps(self, run, guarded):
        token = self.manage(guarded, "token", "x")
        assert run(TRAIN, DOWN2, "--server", guarded.url, "--token", token).status == 0
        for path in guarded.data.rglob("*"):
            if path.is_file():
                assert token.encode() not in path.read_bytes(), path


def test_a_refusal_that_comes_while_bytes_are_sent_is_told_and_not_retried_for_ever(home, start_stack, tmp_path):
    stack = start_stack(PROBE_UPLOAD_MAX_BYTES=str(3 * MEGABYTE))
    begun = time.monotonic()
    arguments = command(heavy(tmp_path / "train", 5), INFER, "--server", stack.url, "--tensors")
    done = subprocess.run(arguments, env=surroundings(home), capture_output=True, text=True, check=False)
    assert done.returncode == 2
    assert "at most 3145728 bytes" in done.stderr.splitlines()[-1]
    assert time.monotonic() - begun < 20


def test_the_file_is_served_whole_and_only_to_be_read(live_stack):
    answer = live_stack.get("/push.py")
    assert answer.headers["Content-Type"] == "text/x-python; charset=utf-8"
    assert answer.body == Path(push.__file__).read_bytes()
    assert live_stack.get("/push.py", **{"If-None-Match": answer.headers["ETag"]}).status == 304
    assert live_stack.call("POST", "/push.py", b"").status == 405
    assert io.BytesIO(answer.body).readline().startswith(b'"""')
