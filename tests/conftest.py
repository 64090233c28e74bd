"""Fixtures every ring shares: real databases, started here, and loud skips."""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pytest
from sqlalchemy import Engine
from support.package_index import PackageIndex
from support.postgres import PostgresServer

from jobs import db

APT = {
    "bwrap": "bubblewrap",
    "chromium": "chromium",
    "ccache": "ccache",
    "cmake": "cmake",
    "debootstrap": "debootstrap",
    "docker": "docker.io",
    "g++": "g++",
    "git": "git",
    "ninja": "ninja-build",
    "node": "nodejs",
    "npm": "npm",
    "redis-server": "redis-server",
}


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--stress-seconds", type=float, default=20.0, help="length of each storm")
    parser.addoption("--stress-seed", type=int, default=5, help="decides the order of its blows")


def pytest_report_header() -> list[str]:
    if "FORKSCOUT_MIRRORS" in os.environ:
        return []
    return ["FORKSCOUT_MIRRORS names no folder of real mirrors: their replay is not collected"]


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        for mark in item.iter_markers("needs"):
            missing = [name for name in mark.args if not _is_there(name)]
            if missing:
                packages = " ".join(sorted({APT.get(name, name) for name in missing}))
                item.add_marker(pytest.mark.skip(reason=f"apt install {packages}"))


@cache
def _is_there(program: str) -> bool:
    """Whether it is installed; a container engine must answer as well."""
    if shutil.which(program) is None:
        return False
    asked = ["docker", "info", "--format", "{{.ServerVersion}}"]
    return program != "docker" or subprocess.run(asked, capture_output=True).returncode == 0


@pytest.fixture(autouse=True)
def _as_wide_as_a_pipe(monkeypatch: pytest.MonkeyPatch) -> None:
    """Commands obey COLUMNS, which the processes of a parallel run have set to 80."""
    monkeypatch.delenv("COLUMNS", raising=False)


@pytest.hookimpl(trylast=True)
def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    skipped = terminalreporter.stats.get("skipped", [])
    if skipped:
        terminalreporter.section("skipped here, and what would enable it")
        for report in skipped:
            reason = report.longrepr[2] if isinstance(report.longrepr, tuple) else ""
            terminalreporter.line(f"{report.nodeid}: {reason.removeprefix('Skipped: ')}")


def pytest_sessionfinish(session: pytest.Session) -> None:
    reporter = session.config.pluginmanager.get_plugin("terminalreporter")
    if os.environ.get("FORKSCOUT_NO_SKIP") == "1" and reporter and reporter.stats.get("skipped"):
        session.exitstatus = pytest.ExitCode.TESTS_FAILED


@pytest.fixture(scope="session")
def postgres(tmp_path_factory: pytest.TempPathFactory) -> Iterator[PostgresServer]:
    """A real PostgreSQL from its wheel, on a unix socket, gone at the end."""
    server = PostgresServer()
    server.start()
    yield server
    server.stop()


@pytest.fixture(scope="session")
def migrated_file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A SQLite database of the newest schema, to copy and never to open."""
    path = tmp_path_factory.mktemp("migrated") / "blank.sqlite"
    db.migrate(f"sqlite:///{path}")
    return path


@pytest.fixture(scope="session")
def migrated_postgres(postgres: PostgresServer) -> str:
    """The address of a PostgreSQL database of the newest schema, to copy and never to open."""
    url = postgres.fresh()
    db.migrate(url)
    return url


@pytest.fixture(params=["sqlite", "postgresql"])
def database_url(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[str]:
    """The address of a fresh, migrated database of each kind."""
    if request.param == "sqlite":
        yield _sqlite(request.getfixturevalue("migrated_file"), tmp_path)
        return
    server: PostgresServer = request.getfixturevalue("postgres")
    url = server.twin(request.getfixturevalue("migrated_postgres"))
    yield url
    server.drop(url)


def _sqlite(blank: Path, folder: Path) -> str:
    path = shutil.copyfile(blank, folder / "test.sqlite")
    return f"sqlite:///{path}"


@pytest.fixture
def database(database_url: str) -> Iterator[Engine]:
    """A connected engine over a fresh database of each kind."""
    engine = db.connect(database_url)
    yield engine
    engine.dispose()


@pytest.fixture
def sqlite(migrated_file: Path, tmp_path: Path) -> Iterator[Engine]:
    """A connected engine over a fresh SQLite database, for what does not depend on the kind."""
    engine = db.connect(_sqlite(migrated_file, tmp_path))
    yield engine
    engine.dispose()


@pytest.fixture
def package_index(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[PackageIndex]:
    """A package index on loopback, and nothing else for pip to ask."""
    for name in ("PIP_FIND_LINKS", "PIP_EXTRA_INDEX_URL", "PIP_NO_INDEX"):
        monkeypatch.delenv(name, raising=False)
    with PackageIndex(tmp_path / "index") as index:
        monkeypatch.setenv("PIP_CONFIG_FILE", os.devnull)
        monkeypatch.setenv("PIP_INDEX_URL", index.url)
        monkeypatch.setenv("PIP_RETRIES", "0")
        monkeypatch.setenv("PIP_DEFAULT_TIMEOUT", "5")
        monkeypatch.setenv("NO_PROXY", "127.0.0.1")
        yield index
