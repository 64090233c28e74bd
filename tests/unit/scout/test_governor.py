"""Who may spend what is left of the quota, and how closely a fork is watched."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest

from scout.github.answers import Quota
from scout.github.governor import Pace, Tier, allows, tier_of

NOW = datetime(2026, 5, 18, 12, 0, tzinfo=UTC)
LATER = NOW + timedelta(minutes=20)


@pytest.mark.parametrize(
    ("remaining", "served"),
    [
        (5000, [0, 1, 2, 3]),
        (2000, [0, 1, 2, 3]),
        (1999, [0, 1, 2]),
        (1000, [0, 1, 2]),
        (999, [0, 1]),
        (500, [0, 1]),
        (499, [0]),
        (1, [0]),
        (0, []),
    ],
)
def test_tiers_stop_one_after_the_other(remaining: int, served: list[int]) -> None:
    """T3 below 40 %, T2 below 20 %, and the chain keeps the last tenth for itself."""
    quota = Quota(5000, remaining, LATER)
    assert [tier for tier in Tier if allows(tier, quota, now=NOW)] == served


def test_the_small_anonymous_quota_has_the_same_floors() -> None:
    """Shares, not numbers."""
    assert not allows(Tier.EVERYTHING, Quota(60, 23, LATER), now=NOW)
    assert allows(Tier.EVERYTHING, Quota(60, 24, LATER), now=NOW)


def test_an_unknown_or_reset_quota_is_full() -> None:
    """Otherwise nobody would ever ask again."""
    assert allows(Tier.EVERYTHING, None, now=NOW)
    assert allows(Tier.EVERYTHING, Quota(60, 0, NOW), now=NOW)


def test_without_a_token_looks_are_an_hour_apart() -> None:
    """There an unchanged page is charged too."""
    pace = Pace({Tier.CHAIN: 5})
    assert pace.after(Tier.CHAIN, anonymous=False) == timedelta(minutes=5)
    assert pace.after(Tier.CHAIN, anonymous=True) == timedelta(minutes=60)
    assert pace.after(Tier.WATCHED, anonymous=False) is None


def test_a_fork_nobody_pushed_to_is_no_candidate() -> None:
    """A fresh fork shows its parent's `pushed_at`."""
    born = NOW - timedelta(days=10)

    def tier(pushed: datetime | None, *, watched: bool = False) -> Tier:
        return tier_of(watched=watched, created_at=born, pushed_at=pushed, now=NOW)

    assert tier(born - timedelta(days=1)) is Tier.EVERYTHING
    assert tier(born) is Tier.EVERYTHING
    assert tier(None) is Tier.EVERYTHING
    assert tier(born + timedelta(days=1)) is Tier.CANDIDATE
    assert tier(None, watched=True) is Tier.CHAIN
    old = tier_of(watched=False, created_at=born - timedelta(days=900),
                  pushed_at=NOW - timedelta(days=61), now=NOW)  # fmt: skip
    assert old is Tier.EVERYTHING
