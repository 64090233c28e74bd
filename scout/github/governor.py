"""Who may ask GitHub, and how often: tiers and one quota; pure, it neither asks nor waits."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timedelta
from enum import IntEnum

from scout.github.answers import Quota

CANDIDATE_DAYS = 60
"""A fork somebody pushed to within this time is worth a closer look."""


class Tier(IntEnum):
    """How closely a repository is watched; a smaller number is asked first."""

    CHAIN = 0
    WATCHED = 1
    CANDIDATE = 2
    EVERYTHING = 3


FLOORS = {Tier.CHAIN: 0.0, Tier.WATCHED: 0.1, Tier.CANDIDATE: 0.2, Tier.EVERYTHING: 0.4}
"""The share of the quota each tier leaves to those before it."""


@dataclass(frozen=True)
class Pace:
    """How often a source is asked per tier, in minutes; a tier it does not name is not asked."""

    minutes: dict[Tier, int]

    def after(self, tier: Tier, *, anonymous: bool) -> timedelta | None:
        """The time between two looks; without a token, where a look is charged, an hour or more."""
        if tier not in self.minutes:
            return None
        minutes = self.minutes[tier]
        return timedelta(minutes=max(minutes, ANONYMOUS_MINUTES) if anonymous else minutes)


ANONYMOUS_MINUTES = 60


def allows(tier: Tier, quota: Quota | None, *, now: datetime) -> bool:
    """Whether a tier may spend a request; a quota that was never told, or has reset, is full."""
    if quota is None or quota.reset_at <= now:
        return True
    if quota.remaining <= 0:
        return False
    return quota.remaining >= FLOORS[tier] * quota.limit


def tier_of(
    *, watched: bool, created_at: datetime | None, pushed_at: datetime | None, now: datetime
) -> Tier:
    """The tier of a fork; a fresh one inherits its parent's `pushed_at`, so that is no push."""
    if watched:
        return Tier.CHAIN
    if pushed_at is None or created_at is None or pushed_at <= created_at:
        return Tier.EVERYTHING
    recent = now - pushed_at <= timedelta(days=CANDIDATE_DAYS)
    return Tier.CANDIDATE if recent else Tier.EVERYTHING
