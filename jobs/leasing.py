"""Takes a job for a worker: one trip to the database where nothing is unusual, more where it is."""

from __future__ import annotations

from sqlalchemy import Engine

from jobs import lifecycle
from jobs.db import at_once, database_now, over_cuts, writing
from jobs.store import leases
from jobs.store.leases import Lease

CUT_SECONDS = 5.0
"""How long a cut connection is tried anew; after that the next doorbell is another chance."""


def take(
    engine: Engine, queue: str, worker: str, *, share: float = lifecycle.SOURCE_SHARE
) -> Lease | None:
    """The lease of what is served next in `queue`, committed; None where nothing is.

    Where the answer to a commit is lost with the connection, that lease is nobody's: the reaper
    takes it back like that of any worker that fell silent.
    """
    return over_cuts(lambda: _take(engine, queue, worker, share), seconds=CUT_SECONDS)


def _take(engine: Engine, queue: str, worker: str, share: float) -> Lease | None:
    if engine.dialect.name == "postgresql":
        with at_once(engine) as connection:
            held = leases.lease_by_its_clock(connection, queue, worker, share=share)
        if held is not None:
            return held
    with writing(engine) as session:
        return leases.lease(session, queue, worker, database_now(session), share=share)
