"""A newer head ends the waiting jobs of the older one, in each kind of database."""

from __future__ import annotations

import pytest
from sqlalchemy import Engine
from sqlmodel import Session
from support.rows import NOON, Rows

from jobs.db import writing
from jobs.model import Kind, Lane, State
from jobs.store import superseding, work
from jobs.tables import JobRow


def waiting(rows: Rows, kind: Kind, revision: int, *needs: JobRow, **fields: object) -> JobRow:
    state = State.BLOCKED if needs else State.QUEUED
    values = {"kind": kind.value, "state": state.value, "payload": {"revision_id": revision}}
    return rows.job(needs=needs, **{"lane": int(Lane.FRESH), **values, **fields})


def states(session: Session, *jobs: JobRow) -> list[str]:
    return [work.job(session, job.id or 0).state for job in jobs]


def test_waiting_jobs_of_the_older_head_end(database: Engine) -> None:
    """Build and bench of that revision only; the reason is on record."""
    with writing(database) as session:
        rows = Rows(session)
        build = waiting(rows, Kind.BUILD, 1)
        bench = waiting(rows, Kind.BENCH, 1, build)
        other = waiting(rows, Kind.BENCH, 2)
        ended = superseding.supersede(session, 1, NOON, message="superseded by main@2")
        assert [job.id for job in ended] == [bench.id, build.id]
        assert states(session, build, bench, other) == ["superseded", "superseded", "queued"]
        assert (bench.message, bench.finished_at) == ("superseded by main@2", NOON)


@pytest.mark.parametrize("state", [State.RUNNING, State.SUCCEEDED, State.FAILED])
def test_what_runs_or_ended_is_left_alone(database: Engine, state: State) -> None:
    """A result that is nearly there is not thrown away."""
    with writing(database) as session:
        rows = Rows(session)
        job = waiting(rows, Kind.BENCH, 1, state=state.value)
        assert superseding.supersede(session, 1, NOON, message="") == []
        assert states(session, job) == [state.value]


def test_what_a_person_asked_for_stays_with_its_build(database: Engine) -> None:
    """An on-demand bench keeps the build it needs."""
    with writing(database) as session:
        rows = Rows(session)
        build = waiting(rows, Kind.BUILD, 1)
        asked = waiting(rows, Kind.BENCH, 1, build, lane=int(Lane.ON_DEMAND))
        routine = waiting(rows, Kind.BENCH, 1, build)
        superseding.supersede(session, 1, NOON, message="")
        assert states(session, build, asked, routine) == ["queued", "blocked", "superseded"]


def test_a_build_that_another_fork_needs_stays(database: Engine) -> None:
    """The same commit in two forks is one build."""
    with writing(database) as session:
        rows = Rows(session)
        build = waiting(rows, Kind.BUILD, 1)
        theirs = waiting(rows, Kind.BENCH, 2, build)
        superseding.supersede(session, 1, NOON, message="")
        assert states(session, build, theirs) == ["queued", "blocked"]
