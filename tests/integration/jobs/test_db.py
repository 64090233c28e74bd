"""Both databases keep moments in UTC and let writers queue."""

from __future__ import annotations

import multiprocessing
from datetime import UTC, datetime, timedelta, timezone

import pytest
from sqlalchemy import Engine, inspect
from sqlalchemy.exc import StatementError
from sqlmodel import SQLModel, select

from jobs import db, negative_tables, rig_tables, sightings  # noqa: F401  (fills the metadata)
from jobs.tables import RigRow


def test_migrations_give_the_tables_of_the_code(database: Engine) -> None:
    """The newest migration and the classes describe the same tables and columns."""
    found = inspect(database)
    for table in SQLModel.metadata.sorted_tables:
        assert {c["name"] for c in found.get_columns(table.name)} == {c.name for c in table.columns}


def test_moments_come_back_in_utc(database: Engine) -> None:
    """A moment in Paris is stored as the same moment in UTC."""
    paris = datetime(2026, 7, 1, 14, 0, tzinfo=timezone(timedelta(hours=2)))
    with db.writing(database) as session:
        session.add(RigRow(name="a", created_at=paris))
    with db.reading(database) as session:
        assert session.exec(select(RigRow)).one().created_at == datetime(2026, 7, 1, 12, tzinfo=UTC)


def test_a_moment_without_a_zone_is_refused(database: Engine) -> None:
    """A naive datetime never reaches a row."""
    with (
        pytest.raises(StatementError, match="without a time zone"),
        db.writing(database) as session,
    ):
        session.add(RigRow(name="a", created_at=datetime(2026, 7, 1)))  # noqa: DTZ001


def _count_up(url: str, times: int) -> None:
    engine = db.connect(url)
    for _ in range(times):
        with db.writing(engine) as session:
            row = session.exec(select(RigRow).with_for_update()).one()
            row.facts = {"count": row.facts["count"] + 1}
            session.add(row)


def test_read_then_write_never_finds_the_database_locked(
    database: Engine, database_url: str
) -> None:
    """Two processes that read and then write 250 times each lose no update (case C128)."""
    with db.writing(database) as session:
        session.add(RigRow(name="a", facts={"count": 0}, created_at=datetime.now(UTC)))
    spawn = multiprocessing.get_context("spawn")
    workers = [spawn.Process(target=_count_up, args=(database_url, 250)) for _ in range(2)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join(60)
    assert [worker.exitcode for worker in workers] == [0, 0]
    with db.reading(database) as session:
        assert session.exec(select(RigRow)).one().facts == {"count": 500}
