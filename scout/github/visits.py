"""Which places each GitHub source may look at, and how often; it looks at none of them."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import datetime
from functools import partial

from sqlmodel import Session

from jobs.git_names import is_pull
from jobs.sightings import RepositoryRow
from jobs.store import catalog, forks, refs
from scout.github import forks as fork_lists
from scout.github import issues, linked, pulls, pushes, releases, repositories, search
from scout.github.base import Outcome, Repo
from scout.github.desk import Desk
from scout.github.governor import Pace, Tier
from scout.github.linked import Link
from scout.github.lists import Interest, ListSource, walk
from scout.github.repositories import Wanted
from scout.watchlist import DRIVEN_FAMILIES

SOURCES = (
    linked.NAME,
    repositories.NAME,
    releases.NAME,
    pulls.NAME,
    issues.NAME,
    fork_lists.NEWEST,
    fork_lists.CENSUS,
    pushes.NAME,
    search.NAME,
)
FOR_TOKENS_ONLY = (pushes.NAME,)
"""GitHub answers these to nobody without a token."""


@dataclass(frozen=True)
class Visit:
    """One thing to look at; when something `stirred_at` it since, it does not wait for its time."""

    source: str
    key: str
    name: str
    tier: Tier
    pace: Pace
    look: Callable[[], Outcome]
    stirred_at: datetime | None = None


def visits_of(session: Session, desk: Desk, source: str) -> Iterator[Visit]:
    """What a source may look at, the closest tier first."""
    if source in FOR_TOKENS_ONLY and desk.client.anonymous:
        return
    if source == linked.NAME:
        yield from _to_linked(session, desk)
    elif source == repositories.NAME:
        yield from _to_repositories(session, desk)
    elif source == search.NAME:
        yield from _to_searches(session, desk)
    elif source in _LISTS:
        yield from _to_lists(session, desk, _LISTS[source])
    else:
        yield from _to_forks(session, desk, source)


def _to_linked(session: Session, desk: Desk) -> Iterator[Visit]:
    for row in forks.linked_issues(session):
        link = Link.of(row)
        name = f"{row.full_name}#{row.number}"
        look = partial(linked.look, desk, link)
        yield Visit(linked.NAME, link.key, name, Tier.CHAIN, linked.PACE, look)


def _to_repositories(session: Session, desk: Desk) -> Iterator[Visit]:
    for wanted in _wanted(session):
        look = partial(repositories.look, desk, wanted)
        pace = repositories.PACE
        yield Visit(repositories.NAME, wanted.key, wanted.full_name, wanted.tier, pace, look)


def _to_lists(session: Session, desk: Desk, source: ListSource) -> Iterator[Visit]:
    rows = _closely_watched(session)
    ours = frozenset(row.github_id for row in rows if row.github_id)
    for row in rows:
        repo = Repo.of(row)
        key = f"{source.NAME}:{repo.github_id}"
        look = partial(walk, desk, source, repo, _interest(session, repo, ours))
        if repo.tier in source.PACE.minutes:
            stirred_at = refs.tags_changed_at(session, row.id or 0) if source is releases else None
            yield Visit(source.NAME, key, repo.full_name, repo.tier, source.PACE, look, stirred_at)


def _to_forks(session: Session, desk: Desk, source: str) -> Iterator[Visit]:
    pace, look = _FORKS[source]
    retired = _retired(session)
    for row in forks.asked_for_forks(session, closest_tier=Tier.WATCHED):
        repo = Repo.of(row)
        alike_only = row.facts.get(search.UNLINKED) and row.tier > Tier.WATCHED
        childless = source == pushes.NAME and not row.forks_count
        if row.engine_id in retired or alike_only or childless:
            continue
        key = f"{source}:{repo.github_id}"
        if repo.tier in pace.minutes:
            yield Visit(source, key, repo.full_name, repo.tier, pace, partial(look, desk, repo))


def _to_searches(session: Session, desk: Desk) -> Iterator[Visit]:
    # Copies are looked for of what can be built.
    watched = [
        engine
        for engine in catalog.engines(session)
        if engine.repo and engine.family in DRIVEN_FAMILIES
    ]
    families = dict.fromkeys(engine.family for engine in watched)
    for each in search.searches(families, [engine.repo or "" for engine in watched]):
        look = partial(search.look, desk, each)
        yield Visit(search.NAME, each.key, each.name, Tier.EVERYTHING, search.PACE, look)


_FORKS: dict[str, tuple[Pace, Callable[[Desk, Repo], Outcome]]] = {
    fork_lists.NEWEST: (fork_lists.NEWEST_PACE, fork_lists.look_newest),
    fork_lists.CENSUS: (fork_lists.CENSUS_PACE, fork_lists.take_census),
    pushes.NAME: (pushes.PACE, pushes.look),
}
_LISTS: dict[str, ListSource] = {
    releases.NAME: releases,
    pulls.NAME: pulls,
    issues.NAME: issues,
}


def _wanted(session: Session) -> Iterator[Wanted]:
    """Each repository once; of two engines that share one, it belongs to the one with branches."""
    asked: set[str] = set()
    engines = [engine for engine in catalog.engines(session) if engine.repo]
    for engine in sorted(engines, key=lambda each: any(map(is_pull, each.branches))):
        repo = engine.repo or ""
        if repo.lower() in asked:
            continue
        asked.add(repo.lower())
        row = forks.repository_of_engine(session, engine.id or 0)
        if row is None or row.github_id is None:
            yield Wanted(repo, engine_id=engine.id)
            continue
        yield Wanted(row.full_name, engine.id, row.github_id, listed=repo)
    states = (forks.KNOWN, forks.GONE, forks.BLOCKED)
    for row in forks.repositories(session, states=states, closest_tier=Tier.WATCHED):
        if row.engine_id is None and row.github_id:
            yield Wanted(row.full_name, None, row.github_id, Tier(row.tier))


def _closely_watched(session: Session) -> list[RepositoryRow]:
    retired = _retired(session)
    rows = forks.repositories(session, closest_tier=Tier.WATCHED)
    return [row for row in rows if row.github_id and row.engine_id not in retired]


def _retired(session: Session) -> frozenset[int | None]:
    """Engines that nobody watches any more; their repositories keep their tier for the day."""
    return frozenset(row.id for row in catalog.engines(session, retired=True) if row.retired)


def _interest(session: Session, repo: Repo, ours: frozenset[int]) -> Interest:
    """Pull requests that come from a repository we watch closely, or that somebody linked."""
    linked_here = forks.issues_linked_to(session, repo.github_id, repo.full_name)
    return Interest(ours - {repo.github_id}, frozenset(row.number for row in linked_here))
