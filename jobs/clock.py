"""The one place that asks what time it is."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

_fault = [timedelta(0)]


def now() -> datetime:
    """This moment as this process believes it, in UTC; other machines may believe another."""
    return of_machine() + _fault[0]


def of_machine() -> datetime:
    """This moment by the clock that all processes of this machine share."""
    return datetime.now(UTC)


def go_wrong(by: timedelta) -> None:
    """Make this process's clock wrong, as those of other machines are: to rehearse that."""
    _fault[0] = by
