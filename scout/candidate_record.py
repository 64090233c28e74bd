"""Writes what became of a look at a fork that nobody builds: an event, a failure, a takedown."""

from __future__ import annotations

import re
from datetime import datetime, timedelta

import structlog
from sqlalchemy import Engine
from sqlmodel import Session

from jobs.db import writing
from jobs.errors import Permanent, ScoutError
from jobs.git import repo_url
from jobs.sightings import RepositoryRow
from jobs.store import catalog, forks, refs
from scout.candidate_values import SOURCE, Candidate, key_of
from scout.github.base import Repo, record
from scout.github.keeping import block
from scout.ref_record import not_after
from scout.ref_values import RefNews
from scout.watch import Trouble

SCHEMA_VERSION = 1
REFUSED_FOR = timedelta(hours=24)
BLOCKED = re.compile(r"returned error: 451\b")
"""How git says that GitHub shows a repository to nobody."""

_log = structlog.get_logger(__name__)


def write(session: Session, one: Candidate, news: RefNews, now: datetime) -> bool:
    """Whether the event is new."""
    if catalog.is_told(session, news.former):
        return False
    event = catalog.add_event(
        session,
        key=news.key,
        kind=news.kind,
        title=news.title,
        now=now,
        happened_at=not_after(now, news.happened_at),
        payload={
            "source": SOURCE,
            "schema_version": SCHEMA_VERSION,
            "subject_id": one.repository,
            "repo_id": one.github_id,
            "full_name": one.full_name,
            "evidence": {"url": repo_url(one.full_name), "sha": news.facts.get("after")},
            "low_priority": True,
            "facts": dict(news.facts),
        },
    )
    return event is not None


def failed(
    database: Engine, now: datetime, name: str, repository: int, error: Exception
) -> Trouble:
    """Say it, and ask this one less and less often; what was refused for a day at least."""
    with writing(database) as session:
        refs.note_failure(session, key_of(repository), now)
        state = refs.source_state(session, key_of(repository), now)
        if isinstance(error, Permanent) and state.retry_at is not None:
            state.retry_at = max(state.retry_at, now + REFUSED_FOR)
            session.add(state)
        row = session.get(RepositoryRow, repository)
        if row is not None and isinstance(error, ScoutError) and BLOCKED.search(error.message):
            news = block(session, row, status=451, now=now)
            record(session, news, source=SOURCE, repo=Repo.of(row), now=now)
            return Trouble(name, f"it {forks.AWAY[forks.BLOCKED]}", of_a_stranger=True)
    if isinstance(error, ScoutError):
        return Trouble(name, error.message, error.advice, of_a_stranger=True)
    _log.exception("candidate crashed", repository=name, exc_info=error)
    return Trouble(name, f"our own fault: {error!r}", "please report this, with the log")
