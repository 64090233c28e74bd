"""Ends what a worker's earlier lives left running: processes, control groups, containers."""

from __future__ import annotations

import shutil

import structlog

from jobs.errors import JobFailure
from workers.docker import Docker
from workers.limited import groups_here
from workers.processes import living, sweep_marker
from workers.sandbox import STEP_PATH

log = structlog.get_logger()


def end_leftovers_of(prefix: str, *, docker_host: str) -> int:
    """End everything whose marker starts so; says how many processes and containers there were.

    An engine that does not answer is said and left alone: its cage would not be proven either.
    """
    ended = sweep_marker(prefix)
    if (groups := groups_here()) is not None:
        groups.sweep(lambda pid: bool(living([pid])))
    if shutil.which("docker", path=STEP_PATH) is None:
        return ended
    try:
        return ended + Docker(docker_host).sweep(prefix)
    except JobFailure as failure:
        log.debug("the container engine was not asked for leftovers", cause=failure.detail)
        return ended
