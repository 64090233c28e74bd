"""The values every look at GitHub deals in, and how an event is written; it asks nothing."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from sqlmodel import Session

from jobs.sightings import RepositoryRow
from jobs.store import catalog
from scout.event_kinds import EventKind
from scout.github.answers import Answer
from scout.github.desk import Held
from scout.github.governor import Tier
from scout.github.texts import not_after, plain

SCHEMA_VERSION = 1
TITLE_LINE = 300


@dataclass(frozen=True)
class Repo:
    """A repository as a look needs it; `watched_since` is when we first saw it.

    `github_id` is 0 where GitHub never told its number.
    """

    github_id: int
    full_name: str
    tier: Tier
    engine_id: int | None = None
    root_id: int | None = None
    watched_since: datetime | None = None

    @classmethod
    def of(cls, row: RepositoryRow) -> Repo:
        """The value of a row."""
        github_id = row.github_id or 0
        return cls(
            github_id=github_id,
            full_name=row.full_name,
            tier=Tier(row.tier),
            engine_id=row.engine_id,
            root_id=row.root_github_id or github_id,
            watched_since=row.first_seen_at,
        )


@dataclass(frozen=True)
class Happening:
    """An event to be written once; `key` is what makes it the same one."""

    kind: EventKind
    key: str
    title: str
    payload: Mapping[str, Any] = field(default_factory=dict)
    happened_at: datetime | None = None


@dataclass(frozen=True)
class Outcome:
    """How one look at one place went: done, held back, or without an answer."""

    new: tuple[Happening, ...] = ()
    held: Held | None = None
    failed: Answer | None = None
    note: str = ""
    unfinished: bool = False


def unanswered(answer: Answer | Held) -> Outcome | None:
    """The outcome where there is nothing to judge, else None."""
    if isinstance(answer, Held):
        return Outcome(held=answer)
    return None if answer.trusted else Outcome(failed=answer)


def record(
    session: Session,
    happenings: Iterable[Happening],
    *,
    source: str,
    repo: Repo | None,
    now: datetime,
) -> tuple[Happening, ...]:
    """Write the events that are new; those with a key already written are left out."""
    new = []
    for happening in happenings:
        about = {"repo_id": repo.github_id or None, "full_name": repo.full_name} if repo else {}
        row = catalog.add_event(
            session,
            key=happening.key,
            kind=happening.kind,
            title=plain(happening.title, TITLE_LINE),
            now=now,
            engine_id=repo.engine_id if repo else None,
            payload={
                **about,
                **happening.payload,
                "source": source,
                "schema_version": SCHEMA_VERSION,
            },
        )
        if row is not None:
            row.happened_at = not_after(happening.happened_at, now)
            session.add(row)
            new.append(happening)
    return tuple(new)
