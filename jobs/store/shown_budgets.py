"""Budgets as people look at them: hours a day, used, planned, left; reads only."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime

from sqlmodel import Session

from jobs.store import histories


@dataclass(frozen=True)
class ShownBudget:
    """Hours of one day (UTC) for a rig or a source; `planned` is what waits and runs.

    `by_default` where no watch list names it and the setting for all rigs counts.
    """

    rig: str
    source: str
    hours_per_day: float
    used_hours: float
    planned_hours: float
    left_hours: float
    by_default: bool

    @property
    def name(self) -> str:
        return f"rig {self.rig}" if self.rig else f"source {self.source}"


def shown_budgets(session: Session, now: datetime, *, hours: float) -> tuple[ShownBudget, ...]:
    """Every budget that counts today, rigs first; `hours` a day for rigs that have none, 0: all."""
    used, planned = histories.used_today(session, now), histories.to_come(session)
    found = histories.budgets(session, now, hours=hours)
    listed = {budget.rig for budget in histories.budgets(session, now)}
    shown = [
        ShownBudget(
            rig=budget.rig,
            source=budget.source,
            hours_per_day=budget.seconds / 3600,
            used_hours=histories.drawn(budget, used) / 3600,
            planned_hours=histories.drawn(budget, planned) / 3600,
            left_hours=budget.left / 3600,
            by_default=bool(budget.rig) and budget.rig not in listed,
        )
        for budget in found
    ]
    return tuple(sorted(shown, key=lambda each: (not each.rig, each.name)))
