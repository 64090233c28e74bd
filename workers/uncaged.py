"""Runs a step with limits and a clean environment but without a cage; only for pinned packages."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from jobs.model import Step
from workers.limited import limited, mortal
from workers.running import Running, unique_marker
from workers.sandbox import Limits, Mount, step_environment, working_folder


class Uncaged:
    """Same contract, no isolation: the step sees this machine's files and network."""

    name = "uncaged"
    caged = False

    def path(self, mount: Mount) -> str:
        return str(mount.host)

    def start(
        self, step: Step, mounts: Sequence[Mount], *, log: Path, limits: Limits, marker: str
    ) -> Running:
        marker = unique_marker(marker)
        home = next((str(mount.host) for mount in mounts if mount.writable), "/nonexistent")
        return Running(
            mortal(limited(step.argv, limits, caged=False)),
            env=step_environment(step, marker, home=home),
            cwd=working_folder(step, mounts, self.path),
            log=log,
            output_bytes=limits.output_bytes,
            marker=marker,
            caged=False,
        )
