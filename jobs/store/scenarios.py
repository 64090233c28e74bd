"""Scenarios that a job may ask: the shipped ones and those of watch lists; it writes nothing."""

from __future__ import annotations

from contextlib import suppress

from sqlmodel import Session, select

from jobs.errors import UsageError
from jobs.own_scenarios import asked_by
from jobs.scenarios import SHIPPED, Scenario, scenario_named
from jobs.tables import StackRow


def of_stack(row: StackRow) -> dict[str, Scenario]:
    """Those that the list of this stack wrote itself; what no release can ask any more is none."""
    found = {}
    for name, table in row.own_scenarios.items():
        if table:
            with suppress(UsageError):
                found[name] = asked_by(name, table)
    return found


def known(session: Session) -> dict[str, Scenario]:
    """All by name; of two own ones with one name that of the newest stack."""
    found = dict(SHIPPED)
    for row in session.exec(select(StackRow).order_by(StackRow.id)):  # type: ignore[arg-type]
        found |= of_stack(row)
    return found


def named(session: Session, name: str) -> Scenario:
    """The one of that name. Raises UsageError with the nearest there is."""
    return scenario_named(name, known(session))
