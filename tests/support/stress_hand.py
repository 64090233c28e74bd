"""One process of the stress test: a real worker or sweeper, its clock wrong, its job tiny."""

from __future__ import annotations

import contextlib
import sys
import time
from datetime import timedelta
from pathlib import Path

from sqlalchemy import text
from sqlmodel import Session

from jobs import clock, worker
from jobs.config import Settings
from jobs.control import Control
from jobs.model import Kind, Step
from jobs.station import Record, Station
from jobs.store.leases import Lease
from scout.tasks import sweep
from workers import tasks
from workers.errands import marker_prefix
from workers.sandbox import Limits
from workers.steps import run_step
from workers.uncaged import Uncaged

WORK = "setsid sleep 60 & sleep {seconds} & wait $!"
MURDER = "setsid sleep 60 & sleep 0.2; kill -9 $PPID; sleep 60"


def tiny(station: Station, held: Lease, control: Control) -> Record:
    """A child, a grandchild that leaves its session, and one row as the result.

    What begins is noted beside the database, so that the two can be compared.
    """
    begun = Path(str(held.payload["begun"])) / f"{held.job_id}.{held.fence}"
    begun.touch()
    words = MURDER if held.payload["kills"] else WORK.format(seconds=held.payload["seconds"])
    run_step(
        Uncaged(),
        Step(name="tiny", argv=("/bin/sh", "-c", words)),
        (),
        log=station.log_of(held),
        limits=Limits(),
        control=control,
        marker=f"{marker_prefix(station)}{held.marker}",
    )

    def record(session: Session) -> str:
        row = {"job": held.job_id, "fence": held.fence}
        session.execute(text("insert into outcome (job, fence) values (:job, :fence)"), row)
        return "done"

    return record


def main(role: str, clock_fault_seconds: str) -> None:
    """Be what `role` says until somebody ends it."""
    clock.go_wrong(timedelta(seconds=float(clock_fault_seconds)))
    tasks.HANDLERS[Kind.SMOKE] = tiny
    if role == "worker":
        worker.run(Settings(), "build")
    while role == "sweeper":
        with contextlib.suppress(Exception):  # the next sweep makes it good
            sweep()
        time.sleep(0.5)


if __name__ == "__main__":
    main(*sys.argv[1:])
