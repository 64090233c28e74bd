"""Sandboxes with one writable folder, and short words for hostile steps in them."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from jobs.control import Control
from jobs.model import Step
from workers.bubblewrap import Bubblewrap
from workers.docker import Docker
from workers.proof import base_python, python_mounts
from workers.running import Running
from workers.sandbox import Limits, Mount, Sandbox
from workers.steps import run_step
from workers.uncaged import Uncaged

CAGE = pytest.param(Bubblewrap(), id="bubblewrap", marks=pytest.mark.needs("bwrap"))
CONTAINER = pytest.param(
    Docker(os.environ.get("DOCKER_HOST", "")), id="docker", marks=pytest.mark.needs("docker")
)
EVERY = pytest.mark.parametrize("sandbox", [CAGE, CONTAINER, pytest.param(Uncaged(), id="uncaged")])
CAGED = pytest.mark.parametrize("sandbox", [CAGE, CONTAINER])
MARKER = f"test-{os.getpid()}/job-1"

DAEMON = """
import os, signal, sys, time
if os.fork() == 0:
    os.setsid()
    if os.fork() == 0:
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
        signal.signal(signal.SIGHUP, signal.SIG_IGN)
        while True:
            with open(sys.argv[1] + "/pulse", "ab") as pulse:
                pulse.write(b".")
            time.sleep(0.01)
    os._exit(0)
while not os.path.exists(sys.argv[1] + "/pulse"):
    time.sleep(0.01)
print("daemon is up", flush=True)
"""


class Place:
    """A sandbox with one writable folder, and short words for what the tests do in it."""

    def __init__(self, sandbox: Sandbox, folder: Path) -> None:
        self.sandbox = sandbox
        self.log = folder / "log"
        self.mount = Mount(folder / "work", "/job", writable=True)
        self.mount.host.mkdir()
        self.mounts = (*python_mounts(), self.mount)
        self.control = Control()
        self.lines: list[str] = []

    def step(self, program: str, **kwargs: object) -> Step:
        words = (base_python(), "-I", "-c", program, self.sandbox.path(self.mount))
        return Step(name="probe", argv=words, **kwargs)  # type: ignore[arg-type]

    def run(self, program: str, *, limits: Limits = Limits(), **kwargs: object) -> str:  # noqa: B008
        self.run_step(self.step(program, **kwargs), limits)
        return self.log.read_text(errors="replace")

    def run_step(self, step: Step, limits: Limits = Limits()) -> None:  # noqa: B008
        run_step(
            self.sandbox,
            step,
            self.mounts,
            log=self.log,
            limits=limits,
            control=self.control,
            marker=MARKER,
            on_line=self.lines.append,
        )

    def start(self, program: str) -> Running:
        """A program that runs on beside the test."""
        return self.sandbox.start(
            self.step(program), self.mounts, log=self.log, limits=Limits(), marker=MARKER
        )

    def pulse(self) -> int:
        return (self.mount.host / "pulse").stat().st_size
