"""Weighs a started git and all that it started; refuses more memory than any honest work needs."""

from __future__ import annotations

import contextlib
import shutil
from pathlib import Path

import psutil

from jobs.errors import Permanent

MEMORY_BYTES = 2**30  # git holds whole commits and trees, and honest ones are small
LIST_MEMORY_BYTES = 2**28  # many lists are asked for at once, and 20,000 refs are a few megabytes
WALL_BYTES = 2 * MEMORY_BYTES  # the system's own limit for each process, should we look too late
PROCESSES = Path("/proc")


class TooMuch(Permanent):
    """That is more than we take of a repository"""


def wall() -> list[str]:
    """Words before a command with which the system itself stops it, and what it starts, at the
    wall; files that are mapped do not count. Where there are none, `weigh` is the only limit.
    """
    prlimit = shutil.which("prlimit")
    return [prlimit, f"--data={WALL_BYTES}", "--"] if prlimit else []


def weigh(pid: int, *, limit_bytes: int | None = None) -> None:
    """Raise `TooMuch` where the process and its children hold too much together."""
    limit_bytes = min(limit_bytes or MEMORY_BYTES, MEMORY_BYTES)
    if held_bytes(pid) > limit_bytes:
        raise TooMuch(
            f"git needed more than {limit_bytes // 2**20} MiB of memory",
            advice="Nothing of it was taken. Look at the repository by hand.",
        )


def held_bytes(pid: int) -> int:
    """Resident memory of a process and its children, without what is a file of the disk."""
    held = 0
    with contextlib.suppress(psutil.Error):
        for each in _family(psutil.Process(pid)):
            with contextlib.suppress(psutil.Error):
                memory = each.memory_info()
                held += memory.rss - getattr(memory, "shared", 0)
    return held


def _family(process: psutil.Process) -> list[psutil.Process]:
    """The process and all below it, as the system lists its children: a look through every process
    of the machine, several times a second for each git, costs more than git does."""
    if not (PROCESSES / f"{process.pid}/task/{process.pid}/children").exists():
        return [process, *process.children(recursive=True)]
    family = [process]
    for each in family:
        for pid in _children(each.pid):
            with contextlib.suppress(psutil.Error):
                family.append(psutil.Process(pid))
    return family


def _children(pid: int) -> list[int]:
    """Each thread's own, as a thread may have started some; one that is over has none."""
    found: list[int] = []
    with contextlib.suppress(OSError):
        for thread in (PROCESSES / f"{pid}/task").iterdir():
            with contextlib.suppress(OSError):
                found += map(int, (thread / "children").read_text().split())
    return found
