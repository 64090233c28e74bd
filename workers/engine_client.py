"""The command of a container engine on this machine's own socket; refuses other addresses."""

from __future__ import annotations

import shutil
import subprocess
from collections.abc import Mapping
from functools import cached_property

from jobs.errors import JobFailure, UsageError
from jobs.model import Blame
from workers.sandbox import STEP_PATH

ASK_SECONDS = 60.0
DEFAULT_HOST = "unix:///var/run/docker.sock"
INSTALL = "Install and start the container engine on the worker: apt install docker.io"


class EngineTool:
    """Asks one engine."""

    def __init__(self, host: str = "") -> None:
        self._host = host or DEFAULT_HOST
        if not self._host.startswith("unix:///"):
            raise UsageError(
                f"the container engine at {self._host[:80]!r} is not on this machine",
                advice="Give the address of its unix socket: unix:///run/docker.sock.",
            )

    @cached_property
    def command(self) -> list[str]:
        """The program and whom it asks."""
        found = shutil.which("docker", path=STEP_PATH)
        if found is None:
            raise JobFailure(
                "docker is not installed",
                failure_class="no_sandbox",
                blame=Blame.ENVIRONMENT,
                advice=INSTALL,
            )
        return [found, "--host", self._host]

    @property
    def environment(self) -> Mapping[str, str]:
        """What the program itself gets: no settings of a person, no proxy, no token."""
        return {"PATH": STEP_PATH, "HOME": "/nonexistent", "DOCKER_CONFIG": "/nonexistent"}

    def ask(self, *words: str, given: bytes = b"") -> str:
        """What the engine answers. Raises `JobFailure` where it does not or says no."""
        done = self._run(words, given)
        if done.returncode:
            said = done.stderr.decode(errors="replace").strip().splitlines()
            raise engine_fault(f"docker {words[0]}: {said[-1][:300] if said else 'no word'}")
        return done.stdout.decode(errors="replace").strip()

    def says(self, *words: str) -> bool:
        """Whether the engine does as asked."""
        return self._run(words, b"").returncode == 0

    def _run(self, words: tuple[str, ...], given: bytes) -> subprocess.CompletedProcess[bytes]:
        try:
            return subprocess.run(
                [*self.command, *words],
                input=given,
                capture_output=True,
                env=self.environment,
                timeout=ASK_SECONDS,
            )
        except subprocess.TimeoutExpired as error:
            raise engine_fault(f"docker {words[0]} gave no answer in {ASK_SECONDS:g} s") from error


def engine_fault(detail: str) -> JobFailure:
    """The engine did not do as asked; no fork is to blame."""
    return JobFailure(
        detail,
        failure_class="container_engine",
        blame=Blame.INFRASTRUCTURE,
        advice=f"Look at the engine's own log. {INSTALL}",
    )
