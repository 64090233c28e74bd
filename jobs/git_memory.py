"""Weighs a started git and all that it started; refuses more memory than any honest work needs."""

from __future__ import annotations

import contextlib
import sys

import psutil

from jobs.errors import Permanent

MEMORY_BYTES = 2**30  # git holds whole commits and trees, and honest ones are small
WALL_BYTES = 2 * MEMORY_BYTES  # the system's own limit for each process, should we look too late


class TooMuch(Permanent):
    """Git holds or writes more than it may."""


def wall_in(pid: int) -> None:
    """Let the system itself stop a process, and what it starts, that grows beyond the wall.

    Files that are mapped do not count. Where the system knows no such limit, `weigh` is the only
    one.
    """
    if sys.platform == "linux":
        with contextlib.suppress(psutil.Error):
            psutil.Process(pid).rlimit(psutil.RLIMIT_DATA, (WALL_BYTES, WALL_BYTES))


def weigh(pid: int) -> None:
    """Raise `TooMuch` where the process and its children hold too much together."""
    if held_bytes(pid) > MEMORY_BYTES:
        raise TooMuch(
            f"git needed more than {MEMORY_BYTES // 2**20} MiB of memory",
            advice="Nothing of it was taken. Look at the repository by hand.",
        )


def held_bytes(pid: int) -> int:
    """Resident memory of a process and its children, without what is a file of the disk."""
    held = 0
    with contextlib.suppress(psutil.Error):
        process = psutil.Process(pid)
        for each in (process, *process.children(recursive=True)):
            with contextlib.suppress(psutil.Error):
                memory = each.memory_info()
                held += memory.rss - getattr(memory, "shared", 0)
    return held
