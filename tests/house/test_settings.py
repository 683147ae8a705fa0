"""The settings, the example of them for people, and the larger installation say the same; nothing is needed to import them."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import yaml

ROOT = Path(__file__).resolve().parents[2]
SETTING = re.compile(r'env\.\w+\(\s*"([A-Z_]+)"')
COMPOSE_ONLY = {"POSTGRES_PASSWORD", "PROBE_PUBLISH", "PROBE_WORKERS"}


def settings_names() -> set[str]:
    return set(SETTING.findall((ROOT / "probe_web" / "settings.py").read_text()))


def example_names() -> set[str]:
    return set(re.findall(r"^#?([A-Z_]+)=", (ROOT / ".env.example").read_text(), re.MULTILINE))


def test_the_example_lists_every_setting_and_no_other() -> None:
    assert example_names() - COMPOSE_ONLY == settings_names()


def test_the_defaults_that_the_example_shows_are_the_real_ones() -> None:
    source = (ROOT / "probe_web" / "settings.py").read_text()
    for name, shown in re.findall(r"^#([A-Z_]+)=(\S+)$", (ROOT / ".env.example").read_text(), re.MULTILINE):
        found = re.search(rf'"{name}", default=([\d_.*" \w:/]+?)[),]', source)
        if found is None or name in COMPOSE_ONLY | {"PROBE_DATA_DIR"}:
            continue
        default = eval(found.group(1), {})  # noqa: S307  a literal of our own source
        assert shown.lower() == str(default).lower(), name


def run_in_empty_environment(folder: Path, *command: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, *command], cwd=folder, env={"PATH": "/usr/bin:/bin"}, capture_output=True, text=True, timeout=120, check=False
    )


def test_settings_need_no_environment_and_open_nothing(tmp_path: Path) -> None:
    code = f"""
import sys
sys.path.insert(0, {str(ROOT)!r})
opened = []
def watch(event, arguments):
    if event in ("sqlite3.connect", "socket.connect"):
        opened.append((event, arguments[-1]))
    if event == "open" and isinstance(arguments[1], str) and set(arguments[1]) & set("wax+"):
        opened.append((event, arguments[0]))
sys.addaudithook(watch)
import os
os.environ["DJANGO_SETTINGS_MODULE"] = "probe_web.settings"
import django
django.setup()
assert not opened, opened
assert "celery" not in sys.modules
"""
    result = run_in_empty_environment(tmp_path, "-B", "-c", code)
    assert result.returncode == 0, result.stderr
    assert list(tmp_path.iterdir()) == []


def test_a_number_that_is_none_is_refused_at_start() -> None:
    environment = {"PROBE_UPLOAD_MAX_BYTES": "many", "PATH": "/usr/bin"}
    result = subprocess.run(
        [sys.executable, "-c", "import probe_web.settings"], cwd=ROOT, env=environment, capture_output=True, check=False
    )
    assert result.returncode != 0


class TestCompose:
    @pytest.fixture
    def compose(self) -> Any:
        return yaml.safe_load((ROOT / "docker-compose.yml").read_text())

    def test_it_has_the_four_services_and_the_migrations(self, compose: Any) -> None:
        assert set(compose["services"]) == {"web", "worker", "redis", "postgres", "migrate"}

    def test_whatever_keeps_running_has_a_health_check(self, compose: Any) -> None:
        for name, service in compose["services"].items():
            if name != "migrate":
                assert service["healthcheck"]["test"][0] in {"CMD", "CMD-SHELL"}, name

    def test_whoever_waits_waits_for_a_service_that_says_how_it_is(self, compose: Any) -> None:
        for service in compose["services"].values():
            for other, wait in service.get("depends_on", {}).items():
                expected = "service_completed_successfully" if other == "migrate" else "service_healthy"
                assert wait["condition"] == expected

    def test_every_mounted_volume_is_declared_and_every_declared_one_is_mounted(self, compose: Any) -> None:
        mounted = {volume.split(":")[0] for service in compose["services"].values() for volume in service.get("volumes", [])}
        assert mounted == set(compose["volumes"])

    def test_web_and_worker_share_the_data_folder_the_image_makes(self, compose: Any) -> None:
        for name in ("web", "worker", "migrate"):
            service = compose["services"][name]
            assert service["volumes"] == ["data:/data"]
            assert service["environment"]["PROBE_DATA_DIR"] == "/data"
        assert "/data /data/incoming" in (ROOT / "Dockerfile").read_text()

    def test_every_variable_is_one_that_the_settings_or_the_example_know(self, compose: Any) -> None:
        known = settings_names() | example_names()
        for name in ("web", "worker", "migrate"):
            passed = set(compose["services"][name]["environment"]) - {"OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS"}
            assert passed <= known
        text = (ROOT / "docker-compose.yml").read_text()
        assert set(re.findall(r"\$\{([A-Z_]+)", text)) <= known

    def test_secrets_have_no_default(self, compose: Any) -> None:
        text = (ROOT / "docker-compose.yml").read_text()
        for name in ("PROBE_SECRET_KEY", "POSTGRES_PASSWORD"):
            assert f"${{{name}:?" in text
            assert f"${{{name}:-" not in text
            assert f"${{{name}}}" not in text

    def test_what_the_image_copies_is_there_and_not_ignored(self) -> None:
        allowed = {line[1:] for line in (ROOT / ".dockerignore").read_text().splitlines() if line.startswith("!")}
        for line in re.findall(r"^COPY (?!--from)(.+)$", (ROOT / "Dockerfile").read_text(), re.MULTILINE):
            for source in line.split()[:-1]:
                assert (ROOT / source).exists(), source
                assert any(source == name or source.startswith(f"{name}/") for name in allowed), source

    def test_the_commands_are_programs_of_the_lock(self, compose: Any) -> None:
        bin_folder = Path(sys.executable).parent
        assert (bin_folder / compose["services"]["web"]["command"][0]).exists()
        options = subprocess.run([bin_folder / "gunicorn", "--help"], capture_output=True, text=True, check=True).stdout
        for argument in compose["services"]["web"]["command"][2:]:
            assert argument.split("=")[0] in options
