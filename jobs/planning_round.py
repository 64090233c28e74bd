"""Plans what nobody planned, a little at a time: each bit is committed and the turn given up.

What is decided about an event is in `jobs.dispatch`.
"""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Callable, Iterator

import structlog
from sqlalchemy import Engine
from sqlmodel import Session

from jobs import dispatch
from jobs.db import database_now, reading, writing
from jobs.dispatch import Planned
from jobs.planning.drafts import Why
from jobs.planning.world import World
from jobs.store import events, histories, rules, work, worlds
from jobs.tables import JobRow

HELD_SECONDS = 0.5
"""So long one transaction plans; others write in between, and no heartbeat comes too late."""

BREATH_SECONDS = 0.12
"""So long nobody plans after it: a writer that waits for SQLite looks every tenth of a second."""

log = structlog.get_logger()

Bit = Callable[[Session, World], list[Planned]]


def plan_round(database: Engine, *, budget_hours: float = 0.0) -> list[JobRow]:
    """Queue what events ask for, and what a budget held back and has room for; the new jobs."""
    jobs: dict[int, JobRow] = {}
    for planned in planning(database, budget_hours=budget_hours):
        jobs |= {job.id or 0: job for job in planned.jobs}
    return list(jobs.values())


def planning(
    database: Engine, *, budget_hours: float = 0.0, held_seconds: float = HELD_SECONDS
) -> Iterator[Planned]:
    """The same, told event by event; what is told is committed."""
    with reading(database) as session:
        seen = events.look(session)
        held_back = rules.held_back(session, histories.day_of(database_now(session)))

    def planned(number: int) -> Bit:
        behind = seen.behind.get(number, ())
        return lambda session, world: dispatch.plan_next(
            session, number, world, behind=behind, budget_hours=budget_hours
        )

    def returned(number: int) -> Bit:
        return lambda session, world: dispatch.come_back(
            session, number, world, budget_hours=budget_hours
        )

    bits = deque([*map(planned, seen.order), *map(returned, held_back)])
    while bits:
        done = _some(database, bits, held_seconds)
        for each in done:
            _tell(each)
            yield each
        if bits:
            time.sleep(BREATH_SECONDS)


def _some(database: Engine, bits: deque[Bit], held_seconds: float) -> list[Planned]:
    done: list[Planned] = []
    with writing(database) as session:
        work.take_turn(session)
        world = worlds.world(session, database_now(session))
        ends = time.monotonic() + held_seconds
        while bits:
            done += bits.popleft()(session, world)
            if time.monotonic() >= ends:
                break
    return done


def _tell(planned: Planned) -> None:
    cut = [each for each in planned.plan.left_out if each.why is Why.BUDGET]
    if cut:
        number = planned.event.id
        log.info("sweep cut by its budget", event_id=number, cut=len(cut), cause=cut[0].detail)
