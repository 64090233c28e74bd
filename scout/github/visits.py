"""Which places each GitHub source may look at, and how often; it looks at none of them."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial

from sqlmodel import Session

from jobs.store import catalog, forks
from scout.github import forks as fork_lists
from scout.github import issues, linked, pulls, releases, repositories
from scout.github.base import Outcome, Repo
from scout.github.desk import Desk
from scout.github.governor import Pace, Tier
from scout.github.linked import Link
from scout.github.lists import Interest, ListSource, walk
from scout.github.repositories import Wanted

SOURCES = (
    linked.NAME,
    repositories.NAME,
    releases.NAME,
    pulls.NAME,
    issues.NAME,
    fork_lists.NEWEST,
    fork_lists.CENSUS,
)


@dataclass(frozen=True)
class Visit:
    """One thing to look at."""

    source: str
    key: str
    name: str
    tier: Tier
    pace: Pace
    look: Callable[[], Outcome]


def visits_of(session: Session, desk: Desk, source: str) -> Iterator[Visit]:
    """What a source may look at, the closest tier first."""
    if source == linked.NAME:
        yield from _to_linked(session, desk)
    elif source == repositories.NAME:
        yield from _to_repositories(session, desk)
    elif source in _LISTS:
        yield from _to_lists(session, desk, _LISTS[source])
    else:
        yield from _to_forks(session, desk, source)


def _to_linked(session: Session, desk: Desk) -> Iterator[Visit]:
    for row in forks.linked_issues(session):
        link = Link(row.full_name, row.number, row.kind, bool(row.facts.get("before")))
        name = f"{row.full_name}#{row.number}"
        look = partial(linked.look, desk, link)
        yield Visit(linked.NAME, link.key, name, Tier.CHAIN, linked.PACE, look)


def _to_repositories(session: Session, desk: Desk) -> Iterator[Visit]:
    for wanted in _wanted(session):
        look = partial(repositories.look, desk, wanted)
        pace = repositories.PACE
        yield Visit(repositories.NAME, wanted.key, wanted.full_name, wanted.tier, pace, look)


def _to_lists(session: Session, desk: Desk, source: ListSource) -> Iterator[Visit]:
    repos = _closely_watched(session)
    ours = frozenset(each.github_id for each in repos)
    for repo in repos:
        key = f"{source.NAME}:{repo.github_id}"
        look = partial(walk, desk, source, repo, _interest(session, repo, ours))
        if repo.tier in source.PACE.minutes:
            yield Visit(source.NAME, key, repo.full_name, repo.tier, source.PACE, look)


def _to_forks(session: Session, desk: Desk, source: str) -> Iterator[Visit]:
    newest = source == fork_lists.NEWEST
    pace = fork_lists.NEWEST_PACE if newest else fork_lists.CENSUS_PACE
    look = fork_lists.look_newest if newest else fork_lists.take_census
    for repo in map(Repo.of, forks.asked_for_forks(session, closest_tier=Tier.WATCHED)):
        key = f"{source}:{repo.github_id}"
        if repo.tier in pace.minutes:
            yield Visit(source, key, repo.full_name, repo.tier, pace, partial(look, desk, repo))


_LISTS: dict[str, ListSource] = {
    releases.NAME: releases,
    pulls.NAME: pulls,
    issues.NAME: issues,
}


def _wanted(session: Session) -> Iterator[Wanted]:
    for engine in catalog.engines(session):
        if engine.repo is None:
            continue
        row = forks.repository_of_engine(session, engine.id or 0)
        if row is None or row.github_id is None:
            yield Wanted(engine.repo, engine_id=engine.id)
            continue
        yield Wanted(row.full_name, engine.id, row.github_id)
    states = (forks.KNOWN, forks.GONE, forks.BLOCKED)
    for row in forks.repositories(session, states=states, closest_tier=Tier.WATCHED):
        if row.engine_id is None and row.github_id:
            yield Wanted(row.full_name, None, row.github_id, Tier(row.tier))


def _closely_watched(session: Session) -> list[Repo]:
    rows = forks.repositories(session, closest_tier=Tier.WATCHED)
    return [Repo.of(row) for row in rows if row.github_id]


def _interest(session: Session, repo: Repo, ours: frozenset[int]) -> Interest:
    """Pull requests that come from a repository we watch closely, or that somebody linked."""
    linked_here = forks.linked_issues(session, repo.full_name)
    return Interest(ours - {repo.github_id}, frozenset(row.number for row in linked_here))
