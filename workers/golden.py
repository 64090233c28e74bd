"""The health job: a rig's golden is measured as any bench is, and says how the rig is, no more."""

from __future__ import annotations

from collections.abc import Sequence

from sqlmodel import Session

from jobs.control import Control
from jobs.db import database_now
from jobs.errors import JobFailure
from jobs.health import Measured
from jobs.lifecycle import NO_SANDBOX
from jobs.model import Boot, Validity
from jobs.payloads import HealthPayload
from jobs.rig_tables import GoldenRow
from jobs.station import Record, Station
from jobs.stats import median
from jobs.store import rigs
from jobs.store.leases import Lease
from jobs.summing import gravest, usable_runs
from workers.benching import measured
from workers.errands import Errand
from workers.host import environment_of, machine_facts
from workers.recording import first_text


def run_golden(station: Station, held: Lease, control: Control) -> Record:
    """Measure the golden; a failure of it is an answer too, and is stored as one."""
    wanted = HealthPayload.model_validate(held.payload)
    try:
        _, boots, facts = measured(Errand(station, held, control), wanted)
        found = seen(boots)
    except JobFailure as failure:
        if failure.failure_class == NO_SANDBOX:
            raise
        facts = machine_facts()
        words = f"{failure.failure_class}: {failure.detail or failure.message}"
        found = Measured(failure=words, blame=failure.blame)

    def record(session: Session) -> str:
        golden = session.get_one(GoldenRow, wanted.golden_id)
        return rigs.record_run(
            session,
            golden,
            found,
            database_now(session),
            job_id=held.job_id,
            environment=environment_of(facts),
        )

    return record


def seen(boots: Sequence[Boot]) -> Measured:
    """What the boots of a golden say: their middle speed, or why there is none."""
    runs = usable_runs(boots)
    worst = gravest(boots)
    if not runs and worst["worst"] is Validity.TAINTED:
        return Measured(disturbance=worst["why"])
    if not runs:
        return Measured(fault=f"{worst['worst'].value}: {worst['why']}")
    return Measured(speed=median([boot.speed for boot in runs]), text_sha256=first_text(boots[0]))
