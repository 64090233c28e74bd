"""The cage: a step under bubblewrap without network, environment, or a file that is not mounted."""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from functools import cached_property
from pathlib import Path

from jobs.errors import JobFailure
from jobs.model import Blame, Step
from workers.limited import enforced_here, group_for, limited, mortal
from workers.processes import MARKER_NAME
from workers.running import Running, unique_marker
from workers.sandbox import (
    STEP_PATH,
    Enforced,
    Limits,
    Mount,
    step_environment,
    working_folder,
)
from workers.tree import HostTree

NOBODY = 65534
CAGE_HOME = "/tmp"  # noqa: S108 - a fresh folder in memory, in each cage its own
SHARED_MEMORY_BYTES = 256 * 2**20
HELP_SECONDS = 10
INSTALL = "Install the cage on the worker: apt install bubblewrap"
MERGED_INTO_USR = ("bin", "sbin", "lib", "lib32", "lib64", "libx32")
HARMLESS = (
    "/etc/ld.so.cache",
    "/etc/ld.so.conf",
    "/etc/ld.so.conf.d",
    "/etc/alternatives",
    "/sys/devices/system/cpu",
)


class Bubblewrap:
    """Runs steps in fresh namespaces as a user without rights. It fails, it never falls back.

    Of the host's devices it shows `devices`, those of one card, and no other.
    """

    name = "bubblewrap"
    caged = True

    def __init__(self, devices: Sequence[str] = ()) -> None:
        self._devices = tuple(devices)

    def path(self, mount: Mount) -> str:
        return mount.inside

    def showing(self, devices: Sequence[str]) -> Bubblewrap:
        return Bubblewrap(devices)

    def enforced(self) -> Enforced:
        return enforced_here()

    def start(
        self, step: Step, mounts: Sequence[Mount], *, log: Path, limits: Limits, marker: str
    ) -> Running:
        marker = unique_marker(marker)
        environment = step_environment(step, marker, home=CAGE_HOME)
        options = [
            *self._namespaces(),
            *_system(),
            *self._memory_folder("/dev/shm", SHARED_MEMORY_BYTES),  # noqa: S108
            *self._memory_folder(CAGE_HOME, limits.tmp_bytes),
            *(word for path in self._devices for word in ("--dev-bind", path, path)),
            *_bound(mounts),
            *("--remount-ro", "/dev", "--remount-ro", "/"),
            "--clearenv",
            *(word for name, value in environment.items() for word in ("--setenv", name, value)),
            *("--chdir", working_folder(step, mounts, self.path)),
        ]
        # Read from a file, not the command line: the cage's first process shows its arguments.
        with _words(options) as words, group_for(limits) as group:
            argv = [
                *(self._program, "--args", str(words), "--"),
                *limited(step.argv, limits, caged=True, group=group),
            ]
            return Running(
                mortal(group.entered_by(argv) if group else argv),
                env={"PATH": STEP_PATH, MARKER_NAME: marker},
                cwd="/",
                log=log,
                output_bytes=limits.output_bytes,
                caged=True,
                tree=lambda pid: HostTree(pid, marker, group),
                pass_fds=[words],
            )

    @cached_property
    def _program(self) -> str:
        found = shutil.which("bwrap", path=STEP_PATH)
        if found is None:
            raise JobFailure(
                "bubblewrap is not installed",
                failure_class="no_sandbox",
                blame=Blame.ENVIRONMENT,
                advice=INSTALL,
            )
        return found

    @cached_property
    def _help(self) -> str:
        done = subprocess.run(
            [self._program, "--help"], capture_output=True, text=True, timeout=HELP_SECONDS
        )
        return done.stdout + done.stderr

    def _namespaces(self) -> Iterator[str]:
        yield from ("--unshare-all", "--unshare-user", "--die-with-parent", "--new-session")
        yield from ("--cap-drop", "ALL", "--hostname", "cage")
        yield from ("--uid", str(NOBODY), "--gid", str(NOBODY))
        if "--disable-userns" in self._help:
            yield "--disable-userns"

    def _memory_folder(self, inside: str, size_bytes: int) -> Iterator[str]:
        if "--size" in self._help:
            yield from ("--size", str(size_bytes))
        yield from ("--tmpfs", inside)


def _system() -> Iterator[str]:
    yield from ("--ro-bind", "/usr", "/usr")
    for name in MERGED_INTO_USR:
        folder = Path("/", name)
        if folder.is_symlink():
            yield from ("--symlink", str(folder.readlink()), str(folder))
        elif folder.is_dir():
            yield from ("--ro-bind", str(folder), str(folder))
    for path in HARMLESS:
        yield from ("--ro-bind-try", path, path)
    yield from ("--proc", "/proc", "--dev", "/dev")


def _bound(mounts: Sequence[Mount]) -> Iterator[str]:
    for mount in sorted(mounts, key=lambda m: m.inside):
        yield from ("--bind" if mount.writable else "--ro-bind", str(mount.host), mount.inside)


@contextmanager
def _words(words: Sequence[str]) -> Iterator[int]:
    with os.fdopen(os.memfd_create("cage"), "w+b", buffering=0) as file:
        file.write(b"".join(os.fsencode(word) + b"\0" for word in words))
        file.seek(0)
        yield file.fileno()
