"""Which programs and libraries a started server has loaded, against its artifact; it ends none."""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path, PurePosixPath

from jobs.errors import JobFailure
from jobs.model import Blame
from workers import autopsy
from workers.plan import Place, Plan
from workers.proof import python_mounts
from workers.running import Running

SYSTEM = ("/usr", "/lib", "/lib32", "/lib64", "/libx32", "/bin", "/sbin")
_EXECUTABLE = re.compile(r"^[0-9a-f]+-[0-9a-f]+ ..x. [0-9a-f]+ \S+ \d+\s+(/.*)$", re.MULTILINE)
DELETED = " (deleted)"
MEMORY_FILES = ("/memfd:", "/dev/zero", "/SYSV", "/dev/nvidia")
"""Code that a driver makes as it runs, and its devices; no file of a disk."""


def prove_libraries(running: Running, plan: Plan, place: Place) -> None:
    """Raise `JobFailure` where the server runs code that is neither artifact nor system."""
    mounts = (plan.artifact, *plan.mounts, *python_mounts())
    paths = [place.sandbox.path(mount) for mount in mounts]
    allowed = (*SYSTEM, *paths, *(os.path.realpath(path) for path in paths))
    maps = _maps(process.pid for process in running.members())
    strange = strangers("\n".join(maps), allowed)
    if strange:
        raise JobFailure(
            f"the server runs code from {strange[0][:200]!r}, which is not in its artifact",
            failure_class="foreign_library",
            blame=Blame.ENGINE,
            phase=autopsy.LOAD,
            advice="Look for what it unpacks or downloads at its start; bench such a build never.",
        )


def strangers(maps: str, allowed: Sequence[str]) -> list[str]:
    """Files mapped as code that lie in none of these folders; of text as in /proc/PID/maps."""
    found = []
    for name in _EXECUTABLE.findall(maps):
        path = name.removesuffix(DELETED)
        inside = any(PurePosixPath(path).is_relative_to(folder) for folder in allowed)
        if name.startswith(MEMORY_FILES) or (inside and path == name and ".." not in path):
            continue
        found.append(path)
    return sorted(set(found))


def _maps(pids: Iterable[int]) -> Iterator[str]:
    for pid in pids:
        try:
            yield Path(f"/proc/{pid}/maps").read_text(errors="replace")
        except OSError:  # it ended meanwhile
            continue
