"""What a person asked to try again keeps its place when more moves before it starts."""

from __future__ import annotations

import pytest
from sqlmodel import select
from support.one_stack import Bench, crash
from support.rows import NOON

from jobs import db
from jobs.model import Kind, Lane, State
from jobs.planner import BY_HAND, PRIORITY_STEP
from jobs.store import retests, work
from jobs.store.durations import Durations
from jobs.tables import JobRow


@pytest.fixture
def bench(database):
    """A fork whose stack crashed once, an hour ago."""
    found = Bench(database, NOON)
    found.ask()
    found.work_off(failure=crash())
    found.later(hours=1)
    return found


def live(bench):
    with db.reading(bench.database) as session:
        rows = session.exec(select(JobRow).order_by(JobRow.id)).all()
        return [row for row in rows if row.state in work.LIVE]


def test_the_lane_and_the_turn_go_to_the_retest_that_asks_with_more(bench) -> None:
    """A push replaces the retest: the new one is the person's too, and the old build ends."""
    [row] = bench.negatives()
    bench.push("2")
    bench.work_off(failure=crash())
    bench.later(hours=1)
    [row] = [each for each in bench.negatives() if each.state == "standing"]
    with db.writing(bench.database) as session:
        asked = retests.retry(session, row.id, bench.now)
        for job in asked:
            job.turn_at -= 2 * PRIORITY_STEP
            session.add(job)
    turn = asked[-1].turn_at
    bench.later(minutes=5)
    bench.push("3")
    jobs = {job.kind: job for job in live(bench)}
    retest, build = jobs[Kind.BENCH], jobs[Kind.BUILD]
    assert {job.lane for job in (retest, build)} == {Lane.ON_DEMAND}
    assert (retest.source, retest.turn_at, build.turn_at) == (BY_HAND, turn, turn)
    assert "asked for by hand" in retest.reason
    assert len(live(bench)) == 2
    assert {bench.job(job.id).state for job in asked} == {State.SUPERSEDED}


def test_what_others_asked_for_by_hand_stays(bench) -> None:
    """The build of the old commit that a person's own bench needs goes on."""
    bench.push("2")
    bench.work_off(failure=crash())
    bench.later(hours=1)
    [row] = [each for each in bench.negatives() if each.state == "standing"]
    with db.writing(bench.database) as session:
        retests.retry(session, row.id, bench.now)
    mine = bench.ask(runs=7)
    bench.later(minutes=5)
    bench.push("3")
    assert {bench.job(job.id).state for job in mine} <= {State.QUEUED, State.BLOCKED}


def test_imports_and_clocks_set_back_tell_nothing_of_a_length(bench) -> None:
    """A job that took no time, or less than none, is no example for the next."""
    with db.writing(bench.database) as session:
        for row in session.exec(select(JobRow)):
            row.state, row.started_at = State.SUCCEEDED.value, NOON
            row.finished_at = NOON.replace(hour=11) if row.kind == Kind.BENCH else NOON
    with db.reading(bench.database) as session:
        assert Durations(session).of("build") == []
        assert Durations(session).of("bench.olares") == []
