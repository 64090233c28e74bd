"""Machines whose clocks disagree by minutes, and a database whose connections are cut."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import timedelta

import pytest
from sqlalchemy import Engine, text
from sqlalchemy.exc import DBAPIError
from support.work import request

from jobs import clock, db, station
from jobs.model import Kind, State
from jobs.store import work

BEHIND, AHEAD = timedelta(minutes=-5), timedelta(minutes=4)


@pytest.fixture(autouse=True)
def _right_again() -> Iterator[None]:
    yield
    clock.go_wrong(timedelta(0))


@pytest.fixture
def desk(make_station, database, embedded):
    return make_station(database, embedded)


def _queued(desk):
    with db.writing(desk.database) as session:
        (row,) = work.enqueue(session, [request("a")], db.database_now(session)).values()
    return row.id


def _ends_reaped_by(taken):
    def handler(desk, held, control):
        clock.go_wrong(AHEAD)
        taken.extend(station.reap(desk))
        clock.go_wrong(BEHIND)
        return lambda _session: "done"

    return {Kind.SMOKE: handler}


def test_a_reaper_whose_clock_is_ahead_takes_nothing_from_a_worker_whose_clock_is_behind(desk):
    """Nine minutes apart, with leases of half a minute: the job is done in one attempt."""
    number, taken = _queued(desk), []
    clock.go_wrong(BEHIND)
    assert station.serve(desk, "build", _ends_reaped_by(taken)) == 1
    with db.reading(desk.database) as session:
        row = work.job(session, number)
    assert taken == []
    assert (row.state, row.attempts) == (State.SUCCEEDED, 1)


def test_what_is_due_is_due_for_a_worker_whose_clock_is_behind(desk):
    """It need not wait until its own clock has come so far."""
    _queued(desk)
    clock.go_wrong(BEHIND)
    assert station.has_due(desk, "build")


def test_the_database_says_what_time_it_is(database: Engine):
    """In UTC, whatever the process believes."""
    clock.go_wrong(AHEAD)
    with db.reading(database) as session:
        found = db.database_now(session)
    assert found.utcoffset() == timedelta(0)
    assert abs(found - clock.of_machine()) < timedelta(seconds=5)


def _cut(session):
    session.execute(text("select pg_terminate_backend(pg_backend_pid())"))


@pytest.fixture
def server(postgres) -> Iterator[Engine]:
    url = postgres.fresh()
    db.migrate(url)
    engine = db.connect(url)
    yield engine
    engine.dispose()


def test_a_result_survives_a_connection_that_is_cut(make_station, server, embedded):
    """The record is written anew over a new connection; the work is not done twice."""
    desk, tries = make_station(server, embedded), []
    number = _queued(desk)

    def record(session):
        tries.append(1)
        if len(tries) == 1:
            _cut(session)
        return "done"

    assert station.serve(desk, "build", {Kind.SMOKE: lambda *_: record}) == 1
    with db.reading(server) as session:
        row = work.job(session, number)
    assert (row.state, row.attempts, row.message, len(tries)) == (State.SUCCEEDED, 1, "done", 2)


def test_what_is_no_fault_of_the_connection_is_not_tried_again(server):
    """A wrong question stays wrong."""
    tries = []

    def ask(session):
        tries.append(1)
        session.execute(text("select nothing from nowhere"))

    with pytest.raises(DBAPIError):
        db.insist(server, ask, seconds=5)
    assert len(tries) == 1
