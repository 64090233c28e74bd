"""How likely a bench is to bring news, and what a budget keeps of a sweep; pure."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime

from jobs.planning.world import Budget, Event, SeriesPast

CHANGE_SHARE, NEARNESS_SHARE, AGE_SHARE = 0.4, 0.35, 0.25
"""What a value is made of; they add up to one."""

NEAR = 0.1
"""A series this far behind the record is worth 1/e of one that holds it."""

OLD_DAYS = 14.0
"""After so many days without a measurement a series is as stale as it gets."""

HOT_FILES = 5
"""So many changed files that matter make a change as large as it gets."""

FAILURE_FACTOR = 0.5
"""Each failure since the last success halves what a bench is worth."""

UNKNOWN_SECONDS = 600.0
"""What a bench of unknown length draws on a budget."""

_SIZES = {
    "fork_capability_changed": 1.0,
    "drafter_published": 0.9,
    "mtp_variant_published": 0.9,
    "target_published": 0.8,
    "issue_closed": 0.8,
    "release": 0.6,
    "hf_files_changed": 0.4,
    "upstream_synced": 0.4,
}
_PLAIN = 0.3


@dataclass(frozen=True)
class Wanted:
    """One bench of a sweep; `seconds` is None where nothing like it was ever run."""

    identity: str
    rig: str
    source: str
    value: float
    seconds: float | None

    @property
    def cost(self) -> float:
        """What it draws on a budget."""
        return UNKNOWN_SECONDS if self.seconds is None else self.seconds


def size_of_change(event: Event) -> float:
    """From 0 to 1: what can an engine do now, how many of the files that matter were touched."""
    if event.low_priority:
        return 0.1
    size = _SIZES.get(event.kind, _PLAIN)
    hot = event.facts.get("files_hot")
    if event.kind == "fork_pushed" and isinstance(hot, list):
        return min(1.0, _PLAIN + (1 - _PLAIN) * len(hot) / HOT_FILES)
    return size


def value_of(
    event: Event, past: SeriesPast, *, now: datetime, place: int = 1, failures: int = 0
) -> float:
    """The chance of a record or a regression as a share, for ordering and nothing else.

    Change, nearness to the record and staleness make it; a series that was never measured is as
    near and as stale as can be. `place` is the how-manieth scenario of its stack this is: the
    first tells most. Failures since the last success make it unlikely.
    """
    nearness = age = 1.0
    if past.last_tps and past.best_tps:
        nearness = math.exp(-max(0.0, 1 - past.last_tps / past.best_tps) / NEAR)
    if past.last_at is not None:
        days = (now - past.last_at).total_seconds() / 86400
        age = min(1.0, max(0.0, days / OLD_DAYS))
    value = CHANGE_SHARE * size_of_change(event) + NEARNESS_SHARE * nearness + AGE_SHARE * age
    return value / place * FAILURE_FACTOR**failures


def within_budget(
    wanted: Sequence[Wanted], budgets: Sequence[Budget]
) -> Mapping[str, tuple[Wanted, Budget]]:
    """What has to go, by identity, with the budget that is used up: the least valuable first.

    A cheaper bench may still fit where a dearer, more valuable one did not.
    """
    left = {budget: budget.left for budget in budgets}
    cut: dict[str, tuple[Wanted, Budget]] = {}
    for each in sorted(wanted, key=lambda one: (-one.value, one.cost, one.identity)):
        mine = [budget for budget in left if budget.covers(rig=each.rig, source=each.source)]
        short = next((budget for budget in mine if left[budget] < each.cost), None)
        if short is not None:
            cut[each.identity] = (each, short)
            continue
        for budget in mine:
            left[budget] -= each.cost
    return cut
