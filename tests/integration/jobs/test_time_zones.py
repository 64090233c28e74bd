"""Nothing but UTC in a row, and schedules that no change of the clocks repeats or skips."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from zoneinfo import ZoneInfo

import pytest
from sqlalchemy import DateTime, Engine
from sqlalchemy.exc import StatementError
from sqlmodel import SQLModel

from jobs import db, sightings, tables
from jobs.columns import UtcDateTime
from jobs.store import fleet

PARIS = ZoneInfo("Europe/Paris")
SPRING, AUTUMN = datetime(2026, 3, 29, tzinfo=UTC), datetime(2026, 10, 25, tzinfo=UTC)
DAY_MINUTES = 24 * 60.0
KNOWN = (sightings, tables)
"""Modules that fill the metadata."""


def _moments() -> Iterator[object]:
    for table in SQLModel.metadata.sorted_tables:
        for column in table.columns:
            if isinstance(column.type, DateTime | UtcDateTime):
                yield pytest.param(column.type, id=f"{table.name}.{column.name}")


@pytest.mark.parametrize("kind", list(_moments()))
def test_every_moment_of_every_table_is_of_the_one_type(kind):
    """Which refuses a value without a time zone."""
    assert isinstance(kind, UtcDateTime)
    with pytest.raises(ValueError, match="without a time zone"):
        kind.process_bind_param(datetime(2026, 3, 29, 2, 30), None)  # noqa: DTZ001


def test_a_moment_without_a_zone_reaches_no_row(database: Engine):
    """It is refused before the database sees it."""
    with pytest.raises(StatementError), db.writing(database) as session:
        fleet.take_slot(session, "nightly", datetime(2026, 3, 29), SPRING)  # noqa: DTZ001


@pytest.mark.parametrize("night", [SPRING, AUTUMN], ids=["spring", "autumn"])
def test_a_moment_of_paris_comes_back_the_same_on_change_nights(database: Engine, night):
    """The hour that is there twice is two moments; the one that is not there is none (C43)."""
    moments = [night + timedelta(minutes=30 * step) for step in range(8)]
    with db.writing(database) as session:
        for moment in moments:
            assert fleet.take_slot(session, "p", moment.astimezone(PARIS), moment)
    with db.reading(database) as session:
        assert all(fleet.slot_outcome(session, "p", moment) == {} for moment in moments)


@pytest.mark.parametrize("night", [SPRING, AUTUMN], ids=["spring", "autumn"])
@pytest.mark.parametrize("minutes", [DAY_MINUTES, 30.0])
def test_a_schedule_fires_once_a_slot_over_both_change_nights(database: Engine, night, minutes):
    """Two schedulers on a machine in Paris ask each ten minutes for three days (C42, C43)."""
    fired = Counter()
    begin = night - timedelta(days=1)
    with db.writing(database) as session:
        for step in range(3 * 24 * 6):
            here = (begin + timedelta(minutes=10 * step)).astimezone(PARIS)
            slot = fleet.slot_of(here, minutes=minutes)
            assert slot.tzinfo is UTC
            for _scheduler in range(2):
                fired[slot.date()] += fleet.take_slot(session, "nightly", slot, here)
    assert fired == {
        (begin + timedelta(days=day)).date(): DAY_MINUTES / minutes for day in range(3)
    }


def test_a_scheduler_that_was_away_for_three_days_catches_up_once(database: Engine):
    """One slot stands for all that were missed, not one for each of them (C42)."""
    with db.writing(database) as session:
        before = fleet.slot_of(AUTUMN, minutes=15)
        assert fleet.take_slot(session, "watch", before, AUTUMN)
        back = AUTUMN + timedelta(days=3)
        asked = [
            fleet.take_slot(session, "watch", fleet.slot_of(back, minutes=15), back)
            for _ in range(288)
        ]
    assert sum(asked) == 1


def test_a_scheduler_whose_clock_is_three_days_behind_fires_no_old_slot_twice(database: Engine):
    """What it takes for now was taken when it was."""
    with db.writing(database) as session:
        for step in range(3 * 96):
            moment = AUTUMN + timedelta(minutes=15 * step)
            assert fleet.take_slot(session, "watch", fleet.slot_of(moment, minutes=15), moment)
        late = [
            fleet.take_slot(session, "watch", fleet.slot_of(moment, minutes=15), moment)
            for moment in (AUTUMN, AUTUMN + timedelta(minutes=15))
        ]
    assert late == [False, False]
