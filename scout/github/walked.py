"""How far a walk over a whole list of forks has come, as a value; it asks nobody."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from typing import Any

from scout.github.desk import Page

LONGEST_CENSUS = timedelta(days=3)
SMALLER_PAGES = 4
"""A page that fails again and again is asked for as this many smaller ones."""
SMALLER_AFTER_FAILURES = 2


@dataclass(frozen=True)
class Census:
    """A walk over the forks of one repository; it goes on where it was interrupted.

    It counts its pages itself: where a reply says that the next one lies is never followed.
    """

    started_at: datetime
    number: int = 1
    per_page: int = 100
    failures: int = 0

    @classmethod
    def read(cls, cursor: Mapping[str, Any], now: datetime) -> Census:
        """The walk that was begun, or a fresh one where there is none or it took too long."""
        kept = cursor.get("census")
        if kept:
            counts = {name: int(kept[name]) for name in ("number", "per_page", "failures")}
            begun = cls(datetime.fromisoformat(kept["started_at"]), **counts)
            if timedelta(0) <= now - begun.started_at < LONGEST_CENSUS:
                return begun
        return cls(now)

    def page(self, place: str) -> Page:
        """The page that is next in the list at `place`."""
        params = {"sort": "oldest", "per_page": str(self.per_page)}
        if self.number > 1:
            params["page"] = str(self.number)
        return Page(place, params)

    def read_pages(self, place: str) -> list[Page]:
        """The pages before it."""
        return [replace(self, number=n + 1).page(place) for n in range(self.number - 1)]

    def after(self) -> Census:
        """One page further."""
        return replace(self, number=self.number + 1, failures=0)

    def after_failure(self) -> Census:
        """The same page again, in smaller ones once it failed too often."""
        failures = self.failures + 1
        if failures < SMALLER_AFTER_FAILURES or self.per_page < 100:
            return replace(self, failures=failures)
        number = (self.number - 1) * SMALLER_PAGES + 1
        per_page = self.per_page // SMALLER_PAGES
        return replace(self, number=number, per_page=per_page, failures=failures)

    def as_json(self) -> dict[str, Any]:
        """What `read` takes back."""
        return {**self.__dict__, "started_at": self.started_at.isoformat()}
