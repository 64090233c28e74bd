"""Puts limits on a step before it starts, and says which the kernel enforces; starts nothing."""

from __future__ import annotations

import os
import platform
import re
import resource
import shutil
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from functools import lru_cache

from jobs.errors import JobFailure, UsageError
from jobs.model import Blame
from workers.cgroups import Group, Groups, find
from workers.sandbox import Enforced, Limits

PROCESS_COUNT_PER_CAGE = (5, 14)  # since this kernel RLIMIT_NPROC counts per user namespace


@lru_cache(maxsize=1)
def groups_here() -> Groups | None:
    """Where this process makes its groups; looked for once."""
    return find()


@contextmanager
def group_for(limits: Limits) -> Iterator[Group | None]:
    """A group with these bounds, None where none can be made; it goes again on an error."""
    groups = groups_here()
    if groups is None:
        yield None
        return
    try:
        group = groups.make()
    except OSError as error:
        raise _no_group(error) from error
    try:
        try:
            group.limit(memory_bytes=limits.memory_bytes, processes=limits.processes)
        except OSError as error:
            raise _no_group(error) from error
        yield group
    except BaseException:
        group.remove()
        raise


def _no_group(error: OSError) -> JobFailure:
    return JobFailure(
        f"the limits of the step could not be set: {error.strerror}",
        failure_class="start_failed",
        blame=Blame.INFRASTRUCTURE,
        advice="Start the worker again; it looks anew for a place for its control groups.",
    )


def enforced(groups: Groups | None, *, uid: int, kernel: Sequence[int]) -> Enforced:
    """How memory and processes are bounded in a cage of this worker."""
    if groups is not None:
        return Enforced(by=f"cgroup v{groups.version}")
    if uid == 0:
        return Enforced(
            by="a count each second",
            faults=("no control group can be made, and the kernel bounds no processes of root",),
        )
    if tuple(kernel) < PROCESS_COUNT_PER_CAGE:
        return Enforced(
            by="a count each second",
            faults=(
                "no control group can be made, and this kernel counts processes per user only",
            ),
        )
    return Enforced(
        by="resource limits of an unprivileged user",
        notes=("memory is bounded per process and counted over the tree each second",),
    )


def enforced_here() -> Enforced:
    """`enforced` for this process."""
    return enforced(groups_here(), uid=os.getuid(), kernel=kernel())


def limited(argv: Sequence[str], limits: Limits, *, caged: bool, group: Group | None) -> list[str]:
    """`argv` behind `prlimit`, which leaves to the group what that bounds.

    Without a group memory is RLIMIT_DATA of each process: mapped weights and reserves are free.
    """
    options = [
        "--core=0",
        f"--fsize={_at_most(resource.RLIMIT_FSIZE, limits.file_bytes)}",
        f"--nofile={_at_most(resource.RLIMIT_NOFILE, limits.open_files)}",
    ]
    if limits.memory_bytes is not None and group is None:
        options.append(f"--data={_at_most(resource.RLIMIT_DATA, limits.memory_bytes)}")
    if limits.cpu_seconds is not None:
        options.append(f"--cpu={_at_most(resource.RLIMIT_CPU, limits.cpu_seconds)}")
    counts = caged and os.getuid() != 0 and kernel() >= PROCESS_COUNT_PER_CAGE
    if group is None and counts:
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


def kernel() -> tuple[int, ...]:
    """Version of the running kernel, its first two numbers."""
    return tuple(int(n) for n in re.findall(r"\d+", platform.release())[:2])
