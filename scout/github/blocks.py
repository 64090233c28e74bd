"""Writes down that GitHub shows a repository to nobody, whichever look heard it; it asks nobody."""

from __future__ import annotations

from jobs.db import writing
from jobs.store import forks
from scout.github.answers import Answer, Kind
from scout.github.base import Happening, Repo, record
from scout.github.desk import Desk
from scout.github.keeping import block


def note_blocked(desk: Desk, repo: Repo, answer: Answer, *, source: str) -> tuple[Happening, ...]:
    """The event where the answer says so and nobody knew; another answer changes nothing."""
    if answer.kind is not Kind.BLOCKED:
        return ()
    now = desk.now()
    with writing(desk.database) as session:
        row = forks.repository(session, repo.github_id)
        if row is None:
            return ()
        news = block(session, row, status=answer.status, now=now)
        return record(session, news, source=source, repo=Repo.of(row), now=now)
