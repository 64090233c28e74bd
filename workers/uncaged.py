"""Runs a step with limits and a clean environment but without a cage; only for pinned packages."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from jobs.model import Step
from workers.limited import limited, mortal
from workers.running import Running, unique_marker
from workers.sandbox import Limits, Mount, step_environment


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
        return Running(
            mortal(limited(step.argv, limits, caged=False)),
            env=step_environment(step, marker),
            cwd=step.cwd or next((str(m.host) for m in mounts if m.writable), "/"),
            log=log,
            output_bytes=limits.output_bytes,
            marker=marker,
            caged=False,
        )
