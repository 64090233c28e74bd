"""Chooses the cage of this machine by its proof; without one no foreign code runs, and says why."""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from jobs.errors import JobFailure, UsageError
from jobs.model import Blame, Trust
from workers.bubblewrap import INSTALL, Bubblewrap
from workers.docker import Docker
from workers.proof import prove
from workers.sandbox import STEP_PATH, Sandbox
from workers.uncaged import Uncaged

SETTINGS = ("auto", "bubblewrap", "docker", "none")
KERNEL_SETTINGS = Path("/proc/sys")
CLOSED: Sequence[tuple[str, str, str]] = (
    ("kernel/apparmor_restrict_unprivileged_userns", "1", "0"),
    ("kernel/unprivileged_userns_clone", "0", "1"),
    ("user/max_user_namespaces", "0", "15000"),
)
"""Settings that keep user namespaces from a cage, the value that does, and one that does not.

The first is Ubuntu's, since 23.10; an AppArmor profile for bwrap with `userns` serves as well.
"""


@dataclass(frozen=True)
class Cage:
    """The cage of this machine; with faults it is none, and packages alone may run beside it."""

    sandbox: Sandbox
    faults: tuple[str, ...] = ()


def candidates(setting: str, docker_host: str) -> list[Sandbox]:
    """What to try, the lighter cage first; `auto` tries a container engine where one is."""
    if setting not in SETTINGS:
        raise UsageError(
            f"FORKSCOUT_SANDBOX is {setting!r}", advice=f"Use one of {', '.join(SETTINGS)}."
        )
    tried: list[Sandbox] = []
    if setting in ("auto", "bubblewrap"):
        tried.append(Bubblewrap())
    if setting == "docker" or (setting == "auto" and shutil.which("docker", path=STEP_PATH)):
        tried.append(Docker(docker_host))
    return tried


def find_cage(
    tried: Sequence[Sandbox], *, proof: Callable[[Sandbox], Sequence[str]] = prove
) -> Cage:
    """The first of these that holds; else what leaks out of each."""
    faults: list[str] = []
    for sandbox in tried:
        found = proof(sandbox)
        if not found:
            return Cage(sandbox)
        faults += [f"{sandbox.name}: {fault}" for fault in found]
    return Cage(Uncaged(), tuple(faults) or ("FORKSCOUT_SANDBOX is none",))


def choose(setting: str, trust: Trust, *, cage: Cage, devices: Sequence[str] = ()) -> Sandbox:
    """The sandbox for code of this trust; raises `JobFailure` where there is none for it.

    `devices` are those of the card that the code may use.
    """
    if trust is Trust.NEVER:
        raise JobFailure(
            "this engine is not trusted to run at all",
            failure_class="not_trusted",
            blame=Blame.CONFIGURATION,
            advice="Change its trust in the watch list to approve, if you mean to run it.",
        )
    if setting == "none" and trust is not Trust.PACKAGE:
        raise _no_sandbox(
            "FORKSCOUT_SANDBOX is none, and a fork's source runs in a cage only",
            advice=f"Set FORKSCOUT_SANDBOX=auto. {INSTALL}",
        )
    if setting != "none" and not cage.faults:
        return cage.sandbox.showing(devices)
    if setting in ("auto", "none") and trust is Trust.PACKAGE:
        return Uncaged()
    raise _no_sandbox(
        "; ".join(cage.faults), advice=f"{cage_advice()} Then start the worker again."
    )


def cage_advice(*, settings: Path = KERNEL_SETTINGS) -> str:
    """What to do where no cage holds; names the kernel's setting that is in the way."""
    words = [f"{INSTALL}."]
    if os.getuid() != 0 or settings != KERNEL_SETTINGS:
        words += [
            f"User namespaces are closed here: sudo sysctl -w {name}={better}."
            for name, better in _closed(settings)
        ]
    words.append("Or use a container engine: apt install docker.io, FORKSCOUT_SANDBOX=docker.")
    return " ".join(words)


def _closed(settings: Path) -> Iterator[tuple[str, str]]:
    for path, closed, better in CLOSED:
        try:
            if (settings / path).read_text().strip() == closed:
                yield path.replace("/", "."), better
        except OSError:
            continue


def _no_sandbox(detail: str, *, advice: str) -> JobFailure:
    return JobFailure(
        f"no sandbox holds here: {detail}",
        failure_class="no_sandbox",
        blame=Blame.ENVIRONMENT,
        advice=advice,
    )
