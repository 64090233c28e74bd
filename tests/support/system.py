"""The whole system in a home folder of its own, driven as a person drives it: by commands."""

from __future__ import annotations

import hashlib
import os
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from support.waiting import wait_for

from jobs import db
from jobs.config import Settings
from jobs.model import State
from jobs.store import work
from jobs.tables import JobRow

LINKED = ("artifacts", "weights")
"""Folders of files that are never changed once they are there; copies of a home share them."""

LONG_SECONDS = 240.0
"""When a wait is given up; no promise of the product, so that a busy machine fails no test."""

MODEL = "tiny:f32"
MODEL_PACKAGE = "forkscout-test-tiny-gguf"

WATCHLIST = """\
[[engine]]
name = "xllamacpp"
family = "xllamacpp"
package = "xllamacpp"
newest = 1
trust = "package"
[[engine.build]]
rig = "cpu"
via = "wheel"

[[model]]
name = "{model}"
package = "{package}"
version = "1.0.0"
sha256 = "{sha256}"
size_bytes = {size_bytes}
model_class = "tiny"
quantisation = "f32"

[[stack]]
name = "tiny-cpu"
engine = "xllamacpp"
target = "{model}"
intent = {{ context = 2048 }}
scenarios = ["decode-128"]
"""


def free_port() -> int:
    """A port of loopback that nobody listens on now."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


class Running:
    """A command that goes on, in a session of its own; what it says is in `said`."""

    def __init__(self, process: subprocess.Popen[bytes], output: Path) -> None:
        self.process = process
        self.output = output

    @property
    def said(self) -> str:
        return self.output.read_text(errors="replace")

    def send(self, number: int) -> None:
        self.process.send_signal(number)

    def wait(self, seconds: float = 60.0) -> int:
        return self.process.wait(seconds)


class System:
    """One installation; `environment` changes what its commands see."""

    def __init__(self, folder: Path, **environment: str) -> None:
        self.folder = folder
        self.home = folder / "v"
        own = {"FORKSCOUT_PORT": str(free_port()), "FORKSCOUT_QUIET_SECONDS": "0"}
        self.environment = own | environment
        self._started: list[Running] = []

    @property
    def settings(self) -> Settings:
        return Settings(home=self.home)

    @property
    def address(self) -> str:
        return f"http://127.0.0.1:{self.environment['FORKSCOUT_PORT']}"

    def _environment(self, changes: Mapping[str, str]) -> dict[str, str]:
        kept = {k: v for k, v in os.environ.items() if not k.startswith("FORKSCOUT_")}
        own = {"FORKSCOUT_HOME": str(self.home), "COLUMNS": "200"}
        return kept | own | self.environment | dict(changes)

    def run(
        self, *words: str, seconds: float = 180.0, **environment: str
    ) -> subprocess.CompletedProcess[str]:
        """Run a command to its end."""
        return subprocess.run(
            [sys.executable, "-m", "jobs.cli", *words],
            env=self._environment(environment),
            cwd=self.folder,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=seconds,
        )

    def start(self, *words: str, **environment: str) -> Running:
        """Start a command that goes on."""
        output = self.folder / f"{words[0]}-{len(self._started)}.out"
        with output.open("wb") as file:
            process = subprocess.Popen(
                [sys.executable, "-m", "jobs.cli", *words],
                env=self._environment(environment),
                cwd=self.folder,
                stdin=subprocess.DEVNULL,
                stdout=file,
                stderr=subprocess.STDOUT,
                start_new_session=True,
            )
        self._started.append(Running(process, output))
        return self._started[-1]

    def up(self, **environment: str) -> Running:
        """Start the system and wait until it says that it is there."""
        running = self.start("up", **environment)
        wait_for(
            lambda: "forkscout is up" in running.said or running.process.poll() is not None,
            what="`up`",
        )
        assert running.process.poll() is None, running.said
        return running

    def jobs(self) -> list[JobRow]:
        """All jobs, oldest first."""
        database = db.connect(self.settings.resolved_database_url)
        with db.reading(database) as session:
            rows = list(work.jobs(session, limit=1000))
        database.dispose()
        return sorted(rows, key=lambda row: row.id or 0)

    def job(self, number: int) -> JobRow:
        return next(row for row in self.jobs() if row.id == number)

    def count(self, table: str, where: str = "1 = 1") -> int:
        """How many rows of a table there are."""
        database = db.connect(self.settings.resolved_database_url)
        with database.connect() as connection:
            query = f"select count(*) from {table} where {where}"
            found = connection.exec_driver_sql(query).scalar()
        database.dispose()
        return int(found or 0)

    def held(self) -> list[JobRow]:
        """Jobs with a lease."""
        return [row for row in self.jobs() if row.state in (State.LEASED, State.RUNNING)]

    def wait_for_state(self, number: int, *states: State, seconds: float = LONG_SECONDS) -> JobRow:
        return wait_for(
            lambda: (row := self.job(number)).state in states and row,
            seconds=seconds,
            what=f"job {number} to be {' or '.join(states)}",
        )

    def wait_for_runs(self, number: int, count: int = 1) -> JobRow:
        """Wait until a bench measures."""
        return wait_for(
            lambda: (
                (row := self.job(number)).state == State.RUNNING
                and (row.progress.get("done") or 0) >= count
                and self.engines()
                and row
            ),
            seconds=LONG_SECONDS,
            what=f"job {number} to measure",
        )

    def processes(self) -> dict[int, str]:
        """Every living process of this installation, by pid with its command line.

        The broker writes its title over its environment; its socket stands in the title.
        """
        home = f"FORKSCOUT_HOME={self.home}".encode()
        return self._carrying(home, self._marker(), title=str(self.settings.broker_socket))

    def engines(self) -> dict[int, str]:
        """Processes that jobs of this installation started."""
        return self._carrying(self._marker())

    def _marker(self) -> bytes:
        home = hashlib.sha256(os.fsencode(self.settings.root)).hexdigest()[:12]
        return f"FORKSCOUT_JOB={home}/".encode()

    @staticmethod
    def _carrying(*wanted: bytes, title: str = "") -> dict[int, str]:
        found = {}
        for entry in Path("/proc").iterdir():
            if not entry.name.isdecimal():
                continue
            try:
                carried = (entry / "environ").read_bytes().split(b"\0")
                words = (entry / "cmdline").read_bytes().replace(b"\0", b" ").decode()
            except OSError:
                continue
            if any(each.startswith(wanted) for each in carried) or (title and title in words):
                found[int(entry.name)] = words
        return found

    def wait_for_silence(self, seconds: float = 10.0) -> None:
        """Wait until no process of this installation is left."""
        deadline = time.monotonic() + seconds
        while left := self.processes():
            assert time.monotonic() < deadline, f"still alive: {left}"
            time.sleep(0.1)

    def copy(self, folder: Path, **environment: str) -> System:
        """The same installation, at rest, in another folder."""
        twin = System(folder, **(self.environment | {"FORKSCOUT_PORT": str(free_port())}))
        twin.environment |= environment
        twin.home.mkdir(mode=0o700)
        for entry in self.home.iterdir():
            if entry.is_dir():
                how = os.link if entry.name in LINKED else shutil.copy2
                shutil.copytree(entry, twin.home / entry.name, symlinks=True, copy_function=how)
            else:
                shutil.copy2(entry, twin.home / entry.name)
        return twin

    def end(self) -> None:
        """End what a test left running; the processes of this home only."""
        for running in self._started:
            if running.process.poll() is None:
                running.send(signal.SIGKILL)
            running.process.wait()
        for pid in self.processes():
            try:
                os.kill(pid, signal.SIGKILL)
            except ProcessLookupError:
                continue


def short_folder() -> Path:
    """A folder whose path is short enough for sockets."""
    return Path(tempfile.mkdtemp(prefix="fs-"))


def write_watchlist(path: Path, weights: Path, **changes: Any) -> Path:
    """The list of these tests: one release of the real server, one tiny model."""
    facts = {
        "model": MODEL,
        "package": MODEL_PACKAGE,
        "sha256": hashlib.sha256(weights.read_bytes()).hexdigest(),
        "size_bytes": weights.stat().st_size,
    }
    path.write_text(WATCHLIST.format(**(facts | changes)))
    return path
