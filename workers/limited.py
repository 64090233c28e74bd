"""Command lines that put limits on a process before it starts; no code of ours runs in between."""

from __future__ import annotations

import os
import platform
import re
import resource
import shutil
from collections.abc import Sequence

from jobs.errors import UsageError
from workers.sandbox import Limits

PROCESS_COUNT_PER_CAGE = (5, 14)  # since this kernel RLIMIT_NPROC counts per user namespace


def limited(argv: Sequence[str], limits: Limits, *, caged: bool) -> list[str]:
    """`argv` behind `prlimit`. Memory is RLIMIT_DATA: mapped weights and reserves are free."""
    options = [
        "--core=0",
        f"--fsize={_at_most(resource.RLIMIT_FSIZE, limits.file_bytes)}",
        f"--nofile={_at_most(resource.RLIMIT_NOFILE, limits.open_files)}",
    ]
    if limits.memory_bytes is not None:
        options.append(f"--data={_at_most(resource.RLIMIT_DATA, limits.memory_bytes)}")
    if limits.cpu_seconds is not None:
        options.append(f"--cpu={_at_most(resource.RLIMIT_CPU, limits.cpu_seconds)}")
    if caged and os.getuid() != 0 and _kernel() >= PROCESS_COUNT_PER_CAGE:
        options.append(f"--nproc={_at_most(resource.RLIMIT_NPROC, limits.processes)}")
    return [program("prlimit"), *options, "--", *argv]


def mortal(argv: Sequence[str]) -> list[str]:
    """`argv` behind `setpriv`, so that the kernel kills it when the thread that started it ends."""
    return [program("setpriv"), "--pdeathsig", "KILL", "--", *argv]


def program(name: str) -> str:
    """The full path of a system program."""
    found = shutil.which(name, path="/usr/local/bin:/usr/bin:/bin")
    if found is None:
        raise UsageError(f"{name} is not installed", advice="apt install util-linux")
    return found


def _at_most(kind: int, wanted: int) -> int:
    hard = resource.getrlimit(kind)[1]
    return wanted if hard == resource.RLIM_INFINITY else min(wanted, hard)


def _kernel() -> tuple[int, ...]:
    return tuple(int(n) for n in re.findall(r"\d+", platform.release())[:2])
