"""Groups of processes whose memory and number the kernel bounds; refuses to guess where it cannot.

cgroup v2 where it is delegated to this worker, else v1; a group dies with the worker that made it.
"""

from __future__ import annotations

import contextlib
import errno
import itertools
import os
import re
import signal
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

NEEDED = ("memory", "pids")
MOUNTED_AT = Path("/sys/fs/cgroup")
OWN_GROUPS = Path("/proc/self/cgroup")
PREFIX = "forkscout."
EMPTY_SECONDS = 2.0
ENTER = 'while [ "$1" != -- ]; do echo $$ >"$1" || exit 125; shift; done; shift; exec "$@"'
"""Puts the shell itself into groups and becomes the program: no child escapes before."""

_name = itertools.count()
_naming = threading.Lock()
_NAME = re.compile(rf"{re.escape(PREFIX)}(\d+)\.\d+")


@dataclass(frozen=True)
class Group:
    """One group, made for one step; in v2 both folders are the same."""

    pids: Path
    memory: Path

    @property
    def folders(self) -> tuple[Path, ...]:
        """Every folder of the group, once."""
        return tuple(dict.fromkeys((self.pids, self.memory)))

    def entered_by(self, argv: list[str]) -> list[str]:
        """`argv` behind a shell that enters the group first."""
        procs = [str(folder / "cgroup.procs") for folder in self.folders]
        return ["/bin/sh", "-c", ENTER, "sh", *procs, "--", *argv]

    def limit(self, *, memory_bytes: int | None, processes: int) -> None:
        """Set the bounds; threads count as processes. Raises OSError where the kernel refuses."""
        (self.pids / "pids.max").write_text(str(processes))
        if memory_bytes is None:
            return
        unified = self.pids == self.memory
        limit = "memory.max" if unified else "memory.limit_in_bytes"
        (self.memory / limit).write_text(str(memory_bytes))
        swap, allowed = (
            ("memory.swap.max", 0) if unified else ("memory.memsw.limit_in_bytes", memory_bytes)
        )
        if (self.memory / swap).exists():
            (self.memory / swap).write_text(str(allowed))

    def members(self) -> list[int]:
        """Every process in the group, whatever it did to its environment or its parents."""
        found: set[int] = set()
        for folder in self.folders:
            with contextlib.suppress(OSError):
                found.update(int(pid) for pid in (folder / "cgroup.procs").read_text().split())
        return sorted(found)

    def struck(self) -> str | None:
        """What the kernel enforced: `memory` after a kill, `processes` after a refused fork."""
        events = "memory.events" if self.pids == self.memory else "memory.oom_control"
        if _count(self.memory / events, "oom_kill"):
            return "memory"
        if _count(self.pids / "pids.events", "max"):
            return "processes"
        return None

    def remove(self) -> None:
        """Take the group away. It must be empty; the kernel may need a moment to see that."""
        deadline = time.monotonic() + EMPTY_SECONDS
        for folder in self.folders:
            while True:
                try:
                    folder.rmdir()
                except FileNotFoundError:
                    break
                except OSError as error:
                    if error.errno != errno.EBUSY or time.monotonic() > deadline:
                        break
                    time.sleep(0.01)
                else:
                    break


@dataclass(frozen=True)
class Groups:
    """Where groups can be made on this machine."""

    version: int
    pids: Path
    memory: Path

    def make(self) -> Group:
        """An empty group of this process. Raises OSError where it may not be made."""
        with _naming:
            name = f"{PREFIX}{os.getpid()}.{next(_name)}"
        group = Group(self.pids / name, self.memory / name)
        for folder in group.folders:
            folder.mkdir()
        return group

    def sweep(self, is_alive: Callable[[int], bool]) -> int:
        """End and remove the groups of workers that are gone; says how many groups there were."""
        names: set[str] = set()
        for folder in dict.fromkeys((self.pids, self.memory)):
            with contextlib.suppress(OSError):
                names.update(path.name for path in folder.iterdir())
        swept = 0
        for name in sorted(names):
            match = _NAME.fullmatch(name)
            if match is None or is_alive(int(match[1])):
                continue
            group = Group(self.pids / name, self.memory / name)
            for pid in group.members():
                with contextlib.suppress(OSError):
                    os.kill(pid, signal.SIGKILL)
            group.remove()
            swept += 1
        return swept


def find(*, mounted_at: Path = MOUNTED_AT, own: Path = OWN_GROUPS) -> Groups | None:
    """Where this process may make groups that bound memory and processes; None where nowhere."""
    paths = dict(_own_paths(own))
    unified = (mounted_at / "cgroup.controllers").exists()
    candidates = _v2_places(mounted_at, paths) if unified else _v1_places(mounted_at, paths)
    for groups in candidates:
        try:
            groups.make().remove()
        except OSError:
            continue
        return groups
    return None


def container_group(pid: int, *, mounted_at: Path = MOUNTED_AT) -> Group | None:
    """The group a container engine made for the process `pid`, None where it cannot be seen."""
    try:
        paths = dict(_own_paths(Path(f"/proc/{pid}/cgroup")))
    except OSError:
        return None
    if (mounted_at / "cgroup.controllers").exists():
        folder = mounted_at / paths.get("", "")
        found = Group(folder, folder)
    elif all(name in paths for name in NEEDED):
        found = Group(mounted_at / "pids" / paths["pids"], mounted_at / "memory" / paths["memory"])
    else:
        return None
    return found if all((folder / "cgroup.procs").exists() for folder in found.folders) else None


def _own_paths(own: Path) -> Iterator[tuple[str, str]]:
    """Controller and path below its mount point; v2 has the empty name."""
    for line in own.read_text().splitlines():
        _, controllers, path = line.split(":", 2)
        if ".." in Path(path).parts:  # outside this cgroup namespace
            continue
        for controller in controllers.split(","):
            yield controller, path.lstrip("/")


def _v2_places(mounted_at: Path, paths: dict[str, str]) -> Iterator[Groups]:
    own = mounted_at / paths.get("", "")
    for folder in (own, own.parent):
        if folder == mounted_at.parent or not _hands_down(folder):
            continue
        yield Groups(2, folder, folder)


def _hands_down(folder: Path) -> bool:
    """Whether children of this group get the controllers; asks for it where it may."""
    control = folder / "cgroup.subtree_control"
    try:
        if not set(NEEDED) <= set(control.read_text().split()):
            control.write_text(" ".join(f"+{name}" for name in NEEDED))
        return set(NEEDED) <= set(control.read_text().replace("+", "").split())
    except OSError:
        return False


def _v1_places(mounted_at: Path, paths: dict[str, str]) -> Iterator[Groups]:
    if not all(name in paths for name in NEEDED):
        return
    pids, memory = (mounted_at / name / paths[name] for name in NEEDED[::-1])
    yield Groups(1, pids, memory)
    yield Groups(1, mounted_at / "pids", mounted_at / "memory")


def _count(file: Path, word: str) -> int:
    try:
        for line in file.read_text().splitlines():
            name, _, value = line.partition(" ")
            if name == word:
                return int(value)
    except (OSError, ValueError):
        return 0
    return 0
