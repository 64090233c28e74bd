"""Runs a step with limits and a clean environment but without a cage; only for pinned packages."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from jobs.model import Step
from workers.limited import enforced_here, group_for, limited, mortal
from workers.running import Running, unique_marker
from workers.sandbox import Enforced, Limits, Mount, step_environment, working_folder
from workers.tree import HostTree


class Uncaged:
    """Same contract, no isolation: the step sees this machine's files and network."""

    name = "uncaged"
    caged = False

    def path(self, mount: Mount) -> str:
        return str(mount.host)

    def showing(self, devices: Sequence[str]) -> Uncaged:
        return self

    def enforced(self) -> Enforced:
        return enforced_here()

    def start(
        self, step: Step, mounts: Sequence[Mount], *, log: Path, limits: Limits, marker: str
    ) -> Running:
        marker = unique_marker(marker)
        home = next((str(mount.host) for mount in mounts if mount.writable), "/nonexistent")
        with group_for(limits) as group:
            argv = limited(step.argv, limits, caged=False, group=group)
            return Running(
                mortal(group.entered_by(argv) if group else argv),
                env=step_environment(step, marker, home=home),
                cwd=working_folder(step, mounts, self.path),
                log=log,
                output_bytes=limits.output_bytes,
                caged=False,
                tree=lambda pid: HostTree(pid, marker, group),
            )
