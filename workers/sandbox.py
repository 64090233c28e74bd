"""The contract between a step and what it runs in; it starts nothing itself."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import Protocol

from jobs.errors import UsageError
from jobs.model import Step
from workers.processes import MARKER_NAME
from workers.running import Running

STEP_PATH = "/usr/local/bin:/usr/bin:/bin"
KEPT_BY_THE_CAGE = ("/usr", "/etc", "/proc", "/dev", "/sys", "/bin", "/sbin", "/lib", "/lib64")
_VARIABLE = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_MARKER = re.compile(r"[A-Za-z0-9._:/-]{1,200}")


@dataclass(frozen=True)
class Mount:
    """A folder or file of the host that a caged step sees at `inside`."""

    host: Path
    inside: str
    writable: bool = False

    def __post_init__(self) -> None:
        inside = PurePosixPath(self.inside)
        if not inside.is_absolute() or ".." in inside.parts or str(inside) != self.inside:
            raise ValueError(f"a mount goes to a plain absolute path, not {self.inside!r}")
        if self.inside == "/" or "\0" in self.inside or not self.host.is_absolute():
            raise ValueError(f"cannot mount {str(self.host)!r} at {self.inside!r}")
        if self.writable and any(inside.is_relative_to(kept) for kept in KEPT_BY_THE_CAGE):
            raise ValueError(f"{self.inside} belongs to the cage and stays read-only")


@dataclass(frozen=True)
class Limits:
    """What one step may use. Memory and processes count over the whole tree, files one by one.

    Threads count as processes. `disk_bytes` and `disk_entries` are what the step may add to its
    writable mounts; the tree is ended as well when less than `min_free_bytes` is left there.
    """

    memory_bytes: int | None = None
    processes: int = 4096
    file_bytes: int = 16 * 2**30
    output_bytes: int = 64 * 2**20
    tmp_bytes: int = 2 * 2**30
    open_files: int = 8192
    cpu_seconds: int | None = None
    min_free_bytes: int = 0
    disk_bytes: int = 64 * 2**30
    disk_entries: int = 2_000_000


@dataclass(frozen=True)
class Enforced:
    """How memory and processes of a caged step are bounded, and what is missing for it.

    With a fault no foreign code runs; a note is only said.
    """

    by: str
    faults: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()


class Sandbox(Protocol):
    """Where a step runs. `caged` says whether it is kept from network, files and environment."""

    @property
    def name(self) -> str: ...

    @property
    def caged(self) -> bool: ...

    def path(self, mount: Mount) -> str:
        """Where a started step finds this mount."""

    def showing(self, devices: Sequence[str]) -> Sandbox:
        """The same, which shows these devices of the host to its steps and no others."""

    def enforced(self) -> Enforced:
        """Which limits hold here, and by what."""

    def start(
        self, step: Step, mounts: Sequence[Mount], *, log: Path, limits: Limits, marker: str
    ) -> Running:
        """Start the step and return at once; its output is appended to `log`.

        Call it from a thread that outlives the step: the tree dies with that thread.
        `marker` names job and installation; leftovers are found by it after a crash.
        """


def working_folder(step: Step, mounts: Sequence[Mount], path: Callable[[Mount], str]) -> str:
    """Where a step starts: where it says, else in its first writable mount, else in the root."""
    return step.cwd or next((path(mount) for mount in mounts if mount.writable), "/")


def step_environment(step: Step, marker: str, *, home: str) -> Mapping[str, str]:
    """All the environment a step gets: four names and what the step itself asks for.

    `home` is a folder no other user can write, since programs read settings and code from there.
    """
    if not _MARKER.fullmatch(marker):
        raise ValueError(f"not a marker: {marker!r}")
    for name, value in step.env.items():
        if not _VARIABLE.fullmatch(name) or name == MARKER_NAME or "\0" in value:
            raise UsageError(
                f"environment variable {name!r} of step {step.name}",
                advice="Use letters, digits and underscores in the name, and plain text as value.",
            )
    if not step.argv or any("\0" in word for word in step.argv):
        raise UsageError(
            f"the command of step {step.name} is empty or holds a NUL character",
            advice="Name a program and plain arguments.",
        )
    return {
        "PATH": STEP_PATH,
        "HOME": home,
        "LANG": "C.UTF-8",
        **step.env,
        MARKER_NAME: marker,
    }
