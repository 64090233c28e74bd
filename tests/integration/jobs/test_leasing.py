"""Taking a job as a worker does: in one statement, over cut connections, never where it may not."""

from __future__ import annotations

import time
from collections.abc import Iterator
from datetime import timedelta

import pytest
from sqlalchemy import Engine, event, text
from support.work import request

from jobs import db, leasing
from jobs.errors import JobFailure
from jobs.line_tables import UseRow
from jobs.model import Blame, Lane, RigState, State
from jobs.rig_tables import RigHealthRow
from jobs.store import fleet, leases, pauses, work
from jobs.tables import JobRow, WorkerRow

HOUR = timedelta(hours=1)


def put(database: Engine, *requests) -> None:
    with db.writing(database) as session:
        work.enqueue(session, requests, db.database_now(session))


def titles(database: Engine, count: int, queue="build", **words) -> list[str]:
    taken = (leasing.take(database, queue, "w1", **words) for _ in range(count))
    return [held.title for held in taken if held is not None]


def add(database: Engine, row: object) -> None:
    with db.writing(database) as session:
        session.add(row)


def moment(database: Engine):
    with db.reading(database) as session:
        return db.database_now(session)


@pytest.fixture
def asked(database: Engine) -> Iterator[list[str]]:
    """The statements that were sent."""
    found: list[str] = []

    def note(_connection, _cursor, statement, *_):
        found.append(statement)

    event.listen(database, "before_cursor_execute", note)
    yield found
    event.remove(database, "before_cursor_execute", note)


def test_a_lease_is_one_statement(database: Engine, asked: list[str]) -> None:
    """Of a rig's queue and with quotas too; pauses, drains and quarantine are asked within it."""
    put(database, request("a", queue="bench.cpu"))
    asked.clear()
    assert titles(database, 1, "bench.cpu", share=0.5) == ["a"]
    assert [each.split()[0] for each in asked if not each.startswith("BEGIN")] == ["UPDATE"]


def test_all_that_a_lease_says_is_in_the_row(database: Engine) -> None:
    """Fence and attempt counted, holder and moment known, the failure before it cleared."""
    put(database, request("a", payload={"of": [1, "two"]}))
    now = moment(database)
    first = leasing.take(database, "build", "w1")
    assert first is not None
    assert first.payload == {"of": [1, "two"]}
    fault = JobFailure("cut", failure_class="cut", blame=Blame.INFRASTRUCTURE, advice="wait")
    with db.writing(database) as session:
        leases.beat(session, first, now, {"phase": "compile"})
        leases.start(session, first, now)
        leases.fail(session, first, fault, now - HOUR, limit=3)
    second = leasing.take(database, "build", "w2")
    assert second is not None
    assert (second.fence, second.attempts) == (2, 2)
    with db.reading(database) as session:
        row = session.get_one(JobRow, second.job_id)
    assert (row.state, row.fence, row.attempts, row.leased_by) == (State.LEASED, 2, 2, "w2")
    assert (row.failure_class, row.blame, row.message, row.advice) == (None, None, "", "")
    assert (row.progress, row.cancel_requested) == ({}, False)
    assert row.beat_at == row.started_at
    assert row.beat_at is not None
    assert timedelta(0) <= row.beat_at - now < HOUR


def test_a_draining_worker_is_leased_nothing(database: Engine) -> None:
    """Another worker gets the job."""
    put(database, request("a"))
    now = moment(database)
    for name in ("w1", "w2"):
        add(
            database,
            WorkerRow(name=name, queue="build", host="h", pid=1, started_at=now, beat_at=now),
        )
    with db.writing(database) as session:
        fleet.drain(session, "w1")
    assert leasing.take(database, "build", "w1") is None
    assert leasing.take(database, "build", "w2") is not None


def test_a_paused_queue_is_leased_from_when_its_time_is_over(database: Engine) -> None:
    """Not before, by the database's clock."""
    put(database, request("a"))
    now = moment(database)
    with db.writing(database) as session:
        pauses.pause(session, "build", now, until=now + HOUR)
    assert titles(database, 1) == []
    with db.writing(database) as session:
        pauses.pause(session, "build", now, until=now - HOUR)
    assert titles(database, 1) == ["a"]


def test_a_quarantined_rig_serves_health_jobs_alone(database: Engine) -> None:
    """And everything once it is trusted."""
    now = moment(database)
    add(database, RigHealthRow(rig="cpu", state=RigState.QUARANTINED.value, since=now))
    put(
        database,
        request("asked", queue="bench.cpu", lane=Lane.ON_DEMAND),
        request("golden", queue="bench.cpu", lane=Lane.HEALTH),
    )
    assert titles(database, 2, "bench.cpu") == ["golden"]
    with db.writing(database) as session:
        session.get_one(RigHealthRow, "cpu").state = RigState.TRUSTED.value
    assert titles(database, 2, "bench.cpu") == ["asked"]


def test_who_was_put_off_goes_before_those_behind_it_as_soon_as_its_time_has_come(
    database: Engine,
) -> None:
    """No sweep is waited for, though somebody else stands in line."""
    put(database, request("later", lane=Lane.CONFIRM))
    held = leasing.take(database, "build", "w1")
    assert held is not None
    now = moment(database)
    with db.writing(database) as session:
        leases.release(session, held, now - HOUR, "wait", wait=HOUR / 2)
    put(database, request("behind", lane=Lane.BACKFILL))
    assert titles(database, 2) == ["later", "behind"]


@pytest.mark.parametrize(("hours_ago", "order"), [(1, ["b", "hog"]), (30, ["hog", "b"])])
def test_a_source_over_its_share_lets_others_go_first(
    database: Engine, hours_ago: int, order: list[str]
) -> None:
    """For a day, by the database's clock."""
    hour = moment(database) - hours_ago * HOUR
    add(database, UseRow(queue="build", hour=hour, source="engine:hog", seconds=90.0))
    put(database, request("hog", source="engine:hog"), request("b", source="engine:b"))
    assert titles(database, 2, share=0.5) == order


@pytest.fixture
def server(postgres) -> Iterator[Engine]:
    url = postgres.fresh()
    db.migrate(url)
    engine = db.connect(url)
    yield engine
    engine.dispose()


def cut_all(engine: Engine) -> None:
    other = db.connect(engine.url.render_as_string())
    with other.connect() as connection:
        connection.execute(
            text(
                "select pg_terminate_backend(pid, 5000) from pg_stat_activity "
                "where datname = current_database() and pid <> pg_backend_pid()"
            )
        )
    other.dispose()


def test_a_connection_that_is_cut_between_two_leases_costs_none(server: Engine) -> None:
    """Neither where it was asked whether it lives, nor where it was used a moment ago."""
    put(server, *(request(f"job {number}") for number in range(3)))
    assert titles(server, 1) == ["job 0"]
    cut_all(server)
    assert titles(server, 1) == ["job 1"]


def test_a_connection_that_was_cut_while_it_rested_is_replaced(server: Engine) -> None:
    """Whoever asks next notices nothing."""
    moment(server)
    cut_all(server)
    time.sleep(db.QUIET_SECONDS)
    assert moment(server) is not None
