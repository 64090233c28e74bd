"""Slots of a schedule are counted in UTC from the epoch, whatever a wall clock does."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from zoneinfo import ZoneInfo

import pytest

from jobs.store.fleet import slot_of

PARIS = ZoneInfo("Europe/Paris")


@pytest.mark.parametrize(("month", "number"), [(3, 29), (10, 25)])
def test_a_night_of_a_clock_change_has_as_many_slots_as_any(month: int, number: int) -> None:
    """The hour that is skipped or comes twice in Paris is one slot or two, never none (C43)."""
    day = datetime(2026, month, number, tzinfo=UTC)
    moments = [(day + timedelta(minutes=minute)).astimezone(PARIS) for minute in range(24 * 60)]
    slots = {slot_of(moment, minutes=30) for moment in moments}
    assert len(slots) == 48
    assert len({slot_of(moment, minutes=24 * 60) for moment in moments}) == 1


def test_a_clock_that_jumps_back_finds_its_slots_taken() -> None:
    """The same moment is the same slot on the second pass, to the microsecond."""
    now = datetime(2026, 11, 30, 12, 0, 1, 999_999, tzinfo=UTC)
    assert slot_of(now, minutes=30) == slot_of(now + timedelta(minutes=29), minutes=30)
    assert slot_of(now, minutes=30) == datetime(2026, 11, 30, 12, 0, tzinfo=UTC)


@pytest.mark.parametrize("minutes", [0.5, 1, 7, 30, 1440])
def test_every_slot_length_has_whole_slots(minutes: float) -> None:
    """A slot's start lies in itself."""
    start = slot_of(datetime(2026, 11, 30, 12, 34, 56, tzinfo=UTC), minutes=minutes)
    assert slot_of(start, minutes=minutes) == start
