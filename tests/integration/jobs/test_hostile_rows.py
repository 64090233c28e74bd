"""What strangers send is stored on both databases, or refused before it gets there."""

from __future__ import annotations

import math

import pytest
from sqlalchemy import BigInteger, Engine, inspect
from sqlmodel import SQLModel
from support.rows import Rows
from support.work import request

from jobs import clock, db, sightings  # noqa: F401  (fills the metadata)
from jobs.dialect import wire
from jobs.errors import JobFailure
from jobs.model import Blame, State
from jobs.store import leases, work
from jobs.tables import BootRow, ModelFileRow, SampleRow

GIB = 2**30
HOSTILE = "a NUL \x00, half a pair \ud800, \x1b[31m red \u202e and " + "long " * 2000


def _held(database: Engine) -> leases.Lease:
    with db.writing(database) as session:
        work.enqueue(session, [request("any")], clock.now())
        held = leases.lease(session, "build", "me", clock.now())
        assert held is not None
        leases.start(session, held, clock.now())
    return held


def test_a_failure_is_recorded_whatever_its_words(database: Engine) -> None:
    """A log line with NUL and broken Unicode does not keep a job from ending."""
    held = _held(database)
    failure = JobFailure(HOSTILE, failure_class="exit", blame=Blame.ENGINE, advice=HOSTILE)
    with db.writing(database) as session:
        leases.fail(session, held, failure, clock.now(), limit=3)
    with db.reading(database) as session:
        job = work.job(session, held.job_id)
    assert job.state == State.FAILED
    assert job.message.startswith("a NUL \ufffd, half a pair \ufffd")
    assert len(job.message) == leases.MESSAGE_CHARS


def test_progress_is_stored_whatever_its_note(database: Engine) -> None:
    """A heartbeat with a stranger's line or a number that is none keeps the lease."""
    held = _held(database)
    with db.writing(database) as session:
        leases.beat(session, held, clock.now(), {"note": HOSTILE, "done": math.nan, "total": 1})
    with db.reading(database) as session:
        assert "\x00" not in work.job(session, held.job_id).progress["note"]


def test_sizes_beyond_two_gibibytes_are_stored(database: Engine) -> None:
    """A model of 40 GB and a server that takes as much are the normal case."""
    with db.writing(database) as session:
        rows = Rows(session)
        model = rows.model_file(size_bytes=40 * GIB)
        result = rows.result(peak_memory_bytes=41 * GIB)
        number, result_number = model.id, result.id
    with db.reading(database) as session:
        assert session.get_one(ModelFileRow, number).size_bytes == 40 * GIB
        assert session.get_one(type(result), result_number).peak_memory_bytes == 41 * GIB


def test_every_column_for_bytes_is_large(database: Engine) -> None:
    """In the classes and, where it matters, in the migrated tables."""
    for table in SQLModel.metadata.sorted_tables:
        found = {c["name"]: c["type"] for c in inspect(database).get_columns(table.name)}
        for column in table.columns:
            if column.name.endswith(("_bytes", "github_id")):
                assert isinstance(column.type, BigInteger), f"{table.name}.{column.name}"
                if database.dialect.name == "postgresql":
                    assert isinstance(found[column.name], BigInteger)


@pytest.mark.parametrize("value", [2**31, 10**15, 10**40, -1, 1.5, True, "7", math.nan, math.inf])
def test_a_count_no_column_takes_is_no_count(value: object) -> None:
    """A server that says it made 10^15 tokens is not believed, and its sample still stored."""
    assert wire.count(value) is None


def test_the_largest_count_is_stored(database: Engine) -> None:
    """What `count` lets through fits into a sample on every database."""
    with db.writing(database) as session:
        rows = Rows(session)
        rows.result()
        boot = session.get_one(BootRow, 1)
        session.add(
            SampleRow(
                boot_id=boot.id or 0,
                run=99,
                warmup=False,
                validity="inconsistent",
                predicted_n=wire.count(wire.LARGEST_COUNT),
                draft_n=wire.LARGEST_COUNT,
            )
        )
