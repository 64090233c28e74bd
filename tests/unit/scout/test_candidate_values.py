"""When a candidate is looked at again."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from jobs.sightings import RepositoryRow, SourceStateRow
from scout.candidate_values import WATCHED_PACE, due, in_turn
from scout.github.governor import Tier

NOW = datetime(2026, 5, 22, 12, tzinfo=UTC)
PUSHED = NOW - timedelta(days=1)


def row(tier: int = Tier.CANDIDATE, pushed_at: datetime | None = PUSHED) -> RepositoryRow:
    return RepositoryRow(id=7, full_name="a/b", tier=tier, pushed_at=pushed_at,
                         first_seen_at=NOW, last_seen_at=NOW)  # fmt: skip


def state(retry_in: timedelta | None = None, **cursor: Any) -> dict[str, SourceStateRow]:
    retry_at = None if retry_in is None else NOW + retry_in
    found = SourceStateRow(key="candidate:7", cursor=cursor, retry_at=retry_at, updated_at=NOW)
    return {found.key: found}


LOOKED = {"looked_at": (NOW - timedelta(hours=1)).isoformat(), "pushed_at": PUSHED.isoformat()}
HOUR = timedelta(hours=1)


@pytest.mark.parametrize(
    ("candidate", "states", "is_due"),
    [
        (row(), {}, True),
        (row(), state(**LOOKED), False),
        (row(pushed_at=NOW), state(**LOOKED), True),
        (row(pushed_at=PUSHED - HOUR), state(**LOOKED), False),
        (row(pushed_at=None), state(**LOOKED), False),
        (row(pushed_at=PUSHED), state(**{**LOOKED, "pushed_at": None}), True),
        (row(), state(HOUR), False),
        (row(), state(-HOUR), True),
        (row(pushed_at=NOW), state(HOUR, **LOOKED), False),
        (row(Tier.WATCHED), state(**LOOKED), True),
        (row(Tier.WATCHED), state(**{**LOOKED, "looked_at": (NOW - WATCHED_PACE / 2).isoformat()}),
         False),
        (row(Tier.WATCHED, pushed_at=NOW), state(**{**LOOKED, "looked_at": NOW.isoformat()}), True),
    ],
)  # fmt: skip
def test_due(candidate: RepositoryRow, states: dict[str, SourceStateRow], is_due: bool) -> None:
    """Never looked at, or pushed to since; after a failure once its time has come."""
    assert bool(due([candidate], states, now=NOW)) is is_due


def test_those_that_are_not_due_take_turns() -> None:
    """Asked for by hand: closely watched ones first, then whoever was looked at longest ago."""
    rows = [row(), row(Tier.WATCHED), row(), row()]
    states = {}
    for number, each in enumerate(rows):
        each.id = number
        key = f"candidate:{number}"
        at = NOW - timedelta(hours=number)
        states[key] = SourceStateRow(key=key, updated_at=at)
    found = in_turn(rows, states, without=[rows[0]])
    assert [each.id for each in found] == [1, 3, 2]
