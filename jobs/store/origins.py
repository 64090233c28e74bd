"""Where an engine's source is asked for now, by GitHub's number and not by its name; it only reads.

A name can pass to somebody else. Where it is doubtful whose it is, nothing may be taken from it.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from sqlmodel import Session, col, select

from jobs.sightings import RepositoryRow
from jobs.store import forks
from jobs.tables import EngineRow

TAKEN_BY = "taken_by"
"""In a repository's facts: names we knew it by, and GitHub's number of who answers there now."""


@dataclass(frozen=True)
class Origin:
    """The repository's name now; `doubt` says why nothing is taken from it, `taken` who else has
    the name that the watch list writes."""

    repo: str
    listed: str
    github_id: int | None = None
    doubt: str = ""
    taken: int | None = None

    @property
    def is_renamed(self) -> bool:
        """Whether the watch list writes a name that it had before."""
        return self.repo.lower() != self.listed.lower()

    @property
    def advice(self) -> str:
        """What a person can do about a doubt, or about a name that somebody else has now."""
        if self.is_renamed:
            return (
                f"write repo = {self.repo!r} in the watch list and import it; "
                "nothing of the old name is looked at or built"
            )
        return (
            "ask again: forkscout scout run --source github_repositories; if it lives elsewhere "
            "now, forkscout watchlist remove it and add the new name"
        )


def origin_of(session: Session, engine: EngineRow) -> Origin:
    """Where this engine is asked for; as the watch list says while GitHub's number is unknown."""
    return origins(session, [engine])[engine.id or 0]


def origins(session: Session, engines: Iterable[EngineRow]) -> dict[int, Origin]:
    """The same for several; watched engines of one listed name share what is known of it."""
    rows = {row.id or 0: row for row in engines if row.repo}
    known = session.exec(
        select(RepositoryRow, EngineRow)
        .join(EngineRow, col(EngineRow.id) == col(RepositoryRow.engine_id))
        .where(col(RepositoryRow.github_id).is_not(None))
        .order_by(col(EngineRow.retired).desc(), col(RepositoryRow.id).desc())
    ).all()
    by_engine = {place.engine_id: place for place, _ in known}
    by_name = {_low(engine): place for place, engine in known if not engine.retired}
    return {
        number: _origin(row.repo or "", by_engine.get(number) or by_name.get(_low(row)))
        for number, row in rows.items()
    }


def _low(row: EngineRow) -> str:
    return (row.repo or "").lower()


def _origin(listed: str, place: RepositoryRow | None) -> Origin:
    if place is None:
        return Origin(listed, listed)
    taken: dict[str, Any] = place.facts.get(TAKEN_BY) or {}
    other = taken.get(place.full_name.lower())
    number = f"GitHub's number {place.github_id}"
    doubt = ""
    if other is not None:
        doubt = f"{place.full_name} belongs to another repository now ({other}, not {number})"
    elif place.state == forks.GONE or place.misses:
        doubt = f"whose {place.full_name} is now is not known: {number} shows nothing"
    return Origin(place.full_name, listed, place.github_id, doubt, taken=taken.get(listed.lower()))
