"""Both databases keep moments in UTC and let writers queue."""

from __future__ import annotations

import multiprocessing
import time
from datetime import UTC, datetime, timedelta, timezone
from pathlib import Path

import pytest
from sqlalchemy import Engine, inspect
from sqlalchemy.exc import DBAPIError, StatementError
from sqlmodel import SQLModel, select

from jobs import arm_tables, db, negative_tables, rig_tables, sightings  # noqa: F401  (fills the metadata)
from jobs.config import Settings
from jobs.store import work
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


def test_a_look_at_the_schema_waits_for_no_writer(tmp_path: Path) -> None:
    """A command that only reads opens the database while somebody writes."""
    settings = Settings(home=tmp_path)
    writer = db.open_database(settings)
    with db.writing(writer) as session:
        session.add(RigRow(name="a", created_at=datetime.now(UTC)))
        session.flush()
        begun = time.monotonic()
        with db.reading(db.open_database(settings)) as reader:
            assert reader.exec(select(RigRow)).all() == []
        assert time.monotonic() - begun < db.BUSY_SECONDS / 2


@pytest.mark.parametrize("database_url", ["postgresql"], indirect=True)
def test_who_stands_still_in_a_change_holds_nobody_up(
    database_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A frozen process loses its transaction, others go on, and it learns of it as of a cut."""
    monkeypatch.setattr(db, "FROZEN_SECONDS", 1)
    frozen, other = db.connect(database_url), db.connect(database_url)

    def stand_still() -> None:
        with db.writing(frozen) as session:
            work.take_turn(session)
            session.add(RigRow(name="lost", created_at=datetime.now(UTC)))
            session.flush()
            with db.writing(other) as going_on:
                work.take_turn(going_on)
                going_on.add(RigRow(name="kept", created_at=datetime.now(UTC)))

    with pytest.raises(DBAPIError) as caught:
        stand_still()
    assert db.is_cut(caught.value)
    with db.reading(other) as session:
        assert [row.name for row in session.exec(select(RigRow))] == ["kept"]
    for engine in (frozen, other):
        engine.dispose()
