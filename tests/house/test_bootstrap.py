"""scripts/bootstrap.sh on a checkout of its own: mirrors set in pip's configuration, pip where uv fails, nothing done twice."""

from __future__ import annotations

import base64
import hashlib
import os
import re
import shutil
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
LOCKS = ("requirements.txt", "requirements-build.txt", "requirements-dev.txt", "scripts/uv.txt")


def write_wheel(folder: Path, name: str, version: str) -> str:
    """A wheel with one empty module; returns the lock's lines for it."""
    info = f"{name}-{version}.dist-info"
    members = {
        f"{name}.py": "",
        f"{info}/METADATA": f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}\n",
        f"{info}/WHEEL": "Wheel-Version: 1.0\nGenerator: test\nRoot-Is-Purelib: true\nTag: py3-none-any\n",
    }
    digests = {
        member: base64.urlsafe_b64encode(hashlib.sha256(text.encode()).digest()).rstrip(b"=").decode() for member, text in members.items()
    }
    record = "".join(f"{member},sha256={digests[member]},{len(text)}\n" for member, text in members.items()) + f"{info}/RECORD,,\n"
    wheel = folder / name.replace("_", "-") / f"{name}-{version}-py3-none-any.whl"
    wheel.parent.mkdir(parents=True)
    with zipfile.ZipFile(wheel, "w") as out:
        for member, text in {**members, f"{info}/RECORD": record}.items():
            out.writestr(member, text)
    digest = hashlib.sha256(wheel.read_bytes()).hexdigest()
    (wheel.parent / "index.html").write_text(f'<a href="{wheel.name}#sha256={digest}">{wheel.name}</a>')
    return f"{name}=={version} \\\n    --hash=sha256:{digest}\n"


class Checkout:
    """A checkout with two tiny packages that only a folder index has, which pip's configuration names."""

    def __init__(self, folder: Path) -> None:
        self.root = folder / "a checkout"
        (self.root / "scripts").mkdir(parents=True)
        for name in ("bootstrap.sh", "pip_settings.py"):
            shutil.copy(ROOT / "scripts" / name, self.root / "scripts")
        index = folder / "simple"
        (self.root / "requirements.txt").write_text(write_wheel(index, "probe_web_first", "1.0"))
        (self.root / "requirements-build.txt").write_text(write_wheel(index, "probe_web_second", "2.0"))
        (self.root / "requirements-dev.txt").write_text("")
        # A version that no index has: as behind a mirror without uv.
        (self.root / "scripts" / "uv.txt").write_text(f"uv==0.0.0 \\\n    --hash=sha256:{'0' * 64}\n")
        (folder / "pip.conf").write_text(f"[global]\nindex-url = {index.as_uri()}\n")
        self.environment = {
            **{name: value for name, value in os.environ.items() if not name.startswith(("PIP_", "UV_"))},
            "PIP_CONFIG_FILE": str(folder / "pip.conf"),
            "HOME": str(folder),
            "UV_CACHE_DIR": str(folder / "uv-cache"),
            "PATH": f"{Path(sys.executable).resolve().parent}:/usr/bin:/bin",
        }

    def bootstrap(self, *arguments: str) -> subprocess.CompletedProcess[str]:
        command = [str(self.root / "scripts" / "bootstrap.sh"), "--no-front-end", *arguments]
        return subprocess.run(command, env=self.environment, capture_output=True, text=True, timeout=120, check=False)

    def imports(self, *modules: str) -> bool:
        command = [str(self.root / ".venv" / "bin" / "python"), "-c", f"import {', '.join(modules)}"]
        return subprocess.run(command, capture_output=True, check=False).returncode == 0


@pytest.fixture
def checkout(tmp_path: Path) -> Checkout:
    return Checkout(tmp_path)


@pytest.fixture
def ready(checkout: Checkout) -> Checkout:
    """Set up once, by pip."""
    result = checkout.bootstrap()
    assert result.returncode == 0, result.stderr
    return checkout


def test_pip_does_the_work_from_its_mirror_where_uv_cannot_be_had(checkout: Checkout) -> None:
    result = checkout.bootstrap()
    assert result.returncode == 0, result.stderr
    assert "pip does (slower)" in result.stderr
    assert checkout.imports("probe_web_first", "probe_web_second")


def test_a_second_time_nothing_is_done_and_nothing_asked(ready: Checkout) -> None:
    shutil.rmtree(ready.root.parent / "simple")
    result = ready.bootstrap()
    assert (result.returncode, result.stderr) == (0, "")


def test_uv_is_handed_the_mirror_that_pip_is_configured_with(ready: Checkout) -> None:
    shutil.copy(Path(sys.executable).parent / "uv", ready.root / ".venv" / "bin" / "uv")
    lock = write_wheel(ready.root.parent / "simple", "probe_web_third", "3.0")
    (ready.root / "requirements-build.txt").write_text(lock)
    result = ready.bootstrap()
    assert result.returncode == 0, result.stderr
    assert "pip does" not in result.stderr, result.stderr
    assert ready.imports("probe_web_first", "probe_web_third")
    # A sync, not a pile: what the lock has no longer is gone.
    assert not ready.imports("probe_web_second")


def test_a_file_that_is_not_the_locks_is_refused(ready: Checkout) -> None:
    lock = write_wheel(ready.root.parent / "simple", "probe_web_fourth", "4.0")
    (ready.root / "requirements-dev.txt").write_text(re.sub(r"sha256:\w{8}", "sha256:00000000", lock))
    result = ready.bootstrap("dev")
    assert result.returncode == 1
    assert "could not be installed" in result.stderr
    assert not ready.imports("probe_web_fourth")


def test_a_moved_checkout_gets_a_new_environment(ready: Checkout) -> None:
    ready.root = ready.root.rename(ready.root.with_name("moved"))
    result = ready.bootstrap()
    assert result.returncode == 0, result.stderr
    assert "Making .venv" in result.stderr
    assert ready.imports("probe_web_first", "probe_web_second")


def test_the_environment_of_another_checkout_is_not_emptied_through_a_link(tmp_path: Path) -> None:
    checkout = Checkout(tmp_path)
    other = tmp_path / "other-venv"
    (other / "bin").mkdir(parents=True)
    (other / "kept").write_text("x")
    (checkout.root / ".venv").symlink_to(other)
    done = checkout.bootstrap()
    assert done.returncode == 1
    assert f".venv is a link to {other}" in done.stderr
    assert (other / "kept").read_text() == "x"


def test_a_python_that_is_too_old_or_absent_is_said_with_what_to_install(tmp_path: Path) -> None:
    (tmp_path / "scripts").mkdir()
    shutil.copy(ROOT / "scripts" / "bootstrap.sh", tmp_path / "scripts")
    (tmp_path / "bin").mkdir()
    for tool in ("sh", "dirname", "cat", "cut", "sha256sum", "tr", "rm"):
        (tmp_path / "bin" / tool).symlink_to(str(shutil.which(tool)))
    (tmp_path / "bin" / "python3").write_text("#!/bin/sh\nexit 1\n")
    (tmp_path / "bin" / "python3").chmod(0o755)
    (tmp_path / "bin" / "id").write_text("#!/bin/sh\necho 1000\n")
    (tmp_path / "bin" / "id").chmod(0o755)
    result = subprocess.run(
        [tmp_path / "scripts" / "bootstrap.sh"], env={"PATH": str(tmp_path / "bin")}, capture_output=True, text=True, check=False
    )
    assert result.returncode == 1
    assert "Python 3.11 or newer is needed" in result.stderr
    assert "apt-get install python3 python3-venv" in result.stderr


class TestLocks:
    @pytest.mark.parametrize("name", LOCKS)
    def test_they_hold_hashes_and_no_host_names(self, name: str) -> None:
        text = (ROOT / name).read_text()
        assert "://" not in text
        assert "--index" not in text
        pinned = re.findall(r"^[\w.\[\]-]+==\S+", text, re.MULTILINE)
        assert pinned
        assert text.count("--hash=sha256:") >= len(pinned)

    @pytest.mark.parametrize("name", LOCKS)
    def test_they_hold_what_people_asked_for(self, name: str) -> None:
        lock = (ROOT / name).read_text()
        for line in (ROOT / name.replace(".txt", ".in")).read_text().splitlines():
            wanted = re.match(r"([\w-]+)(\[\w+\])?(==[\w.]+)?", line)
            if wanted and not line.startswith(("#", "-")):
                assert re.search(rf"^{wanted[1]}{re.escape(wanted[3] or '==')}", lock, re.MULTILINE | re.IGNORECASE), line

    def test_the_three_agree_with_each_other(self) -> None:
        seen: dict[str, str] = {}
        for name in LOCKS[:3]:
            for package, version in re.findall(r"^([\w.-]+)==(\S+)", (ROOT / name).read_text(), re.MULTILINE):
                assert seen.setdefault(package, version) == version, package

    def test_the_front_ends_lock_has_no_addresses_and_not_the_broken_bundler(self) -> None:
        text = (ROOT / "frontend" / "package-lock.json").read_text()
        assert '"resolved"' not in text
        assert "napi-windows-process-start-time" not in text
