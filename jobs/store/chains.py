"""Read queries for the pages of forks: who stands where, who else was found; never commits."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime
from typing import Any

from sqlalchemy import func
from sqlmodel import Session, col, select

from jobs.sightings import LinkedIssueRow, RepositoryRow, StandingRow
from jobs.store import forks, overview
from jobs.store.refs import repositories_of_engines
from jobs.store.shown import ShownEvent
from jobs.store.shown_forks import (
    Ability,
    Beyond,
    ForkDetail,
    Forks,
    OtherFork,
    ShownAbsorbed,
    ShownDistance,
    ShownFork,
    ShownIssue,
    ShownScore,
    ShownSync,
    Standing,
)
from jobs.store.standings import standings
from jobs.tables import EngineRow, EventRow

MOST_OTHERS = 200
MOST_SCORED = 2_000
"""Of more, only those closest by tier and stars are put in the order of their scores."""
MOST_EVENTS = 20
MOST_REVISIONS = 20
MOST_DETAILS, LONGEST_DETAIL = 40, 120


def found(session: Session, *, others: int = MOST_OTHERS) -> Forks:
    """All watched repositories, the closest of the others, and the linked issues."""
    unwatched = (col(RepositoryRow.engine_id).is_(None), forks.IS_FORK)
    closest = session.exec(
        select(RepositoryRow)
        .where(*unwatched)
        .order_by(col(RepositoryRow.tier), col(RepositoryRow.stars).desc(), col(RepositoryRow.id))
        .limit(max(others, MOST_SCORED))
    )
    rows = sorted(closest, key=_most_promising)[:others]
    parents = forks.known_ids(session, {row.parent_github_id or 0 for row in rows})
    total = session.exec(select(func.count()).select_from(RepositoryRow).where(*unwatched)).one()
    return Forks(
        watched=watched(session),
        others=tuple(_other(row, parents) for row in rows),
        others_total=total,
        issues=_issues(session, forks.linked_issues(session)),
    )


def _most_promising(row: RepositoryRow) -> tuple[bool, float]:
    """The highest score first; those that have none stay as they were, behind them."""
    found = _score(row)
    if found is None or found.shut_out:
        return (True, 0.0)
    return (False, -found.score)


def watched(session: Session) -> tuple[ShownFork, ...]:
    """Every engine that has a repository, elders before their forks, chain by chain."""
    places = repositories_of_engines(session)
    rows = [row for row in session.exec(select(EngineRow)) if row.id in places]
    kept = standings(session)
    released = forks.latest_releases(session)
    named = {row.name for row in rows}
    parents = {row.name: _parent(row, kept.get(places[row.id or 0].id or 0), named) for row in rows}
    shown = {
        row.name: _fork(row, places[row.id or 0], kept, parents, released)
        for row in sorted(rows, key=lambda row: row.name)
    }
    return tuple(shown[name] for name in elders_first(parents))


def elders_first(parents: Mapping[str, str | None]) -> list[str]:
    """Names so that each stands right below its parent; a circle of parents is cut."""
    below: dict[str | None, list[str]] = {}
    for name in sorted(parents):
        below.setdefault(parents[name], []).append(name)
    order: dict[str, None] = {}
    for start in [*below.get(None, []), *sorted(parents)]:
        waiting = [start]
        while waiting:
            name = waiting.pop()
            if name not in order:
                order[name] = None
                waiting += reversed(below.get(name, []))
    return list(order)


def fork(session: Session, repository_id: int) -> ForkDetail | None:
    """One watched repository with its chain, its newest events and revisions."""
    everyone = watched(session)
    shown = next((each for each in everyone if each.id == repository_id), None)
    if shown is None:
        return None
    row = session.get_one(RepositoryRow, repository_id)
    mine = col(EventRow.engine_id) == row.engine_id
    events = session.exec(
        select(EventRow)
        .where(mine)
        .order_by(col(EventRow.seen_at).desc(), col(EventRow.id).desc())
        .limit(MOST_EVENTS)
    )
    revisions = overview.revisions(session, engine_id=row.engine_id).get(row.engine_id or 0, [])
    return ForkDetail(
        fork=shown,
        chain=chain_of(shown, everyone),
        events=tuple(
            ShownEvent(each.kind, each.title, shown.engine, each.seen_at, shown.id, _details(each))
            for each in events
        ),
        events_total=session.exec(select(func.count()).select_from(EventRow).where(mine)).one(),
        revisions=tuple(revisions[:MOST_REVISIONS]),
        revisions_total=len(revisions),
        issues=_issues(session, forks.issues_linked_to(session, row.github_id, shown.full_name)),
    )


def _details(event: EventRow) -> tuple[str, ...]:
    """What a push made understood, as kind and name; else what its new patches say."""
    facts = event.payload.get("facts") or {}
    told = facts.get("new") or facts.get("subjects") or ()
    return tuple(str(each)[:LONGEST_DETAIL] for each in told[:MOST_DETAILS])


def chain_named(session: Session, engine: str) -> tuple[ShownFork, ...]:
    """The chain an engine belongs to, elders first; nothing for a name nobody has."""
    everyone = watched(session)
    shown = next((each for each in everyone if each.engine == engine), None)
    return chain_of(shown, everyone) if shown else ()


def chain_of(shown: ShownFork, everyone: Sequence[ShownFork]) -> tuple[ShownFork, ...]:
    """All with the same upstream, in the order given."""
    return tuple(each for each in everyone if each.upstream == shown.upstream)


def _parent(row: EngineRow, kept: StandingRow | None, named: set[str]) -> str | None:
    """As the commits say, else as the watch list names it; only one that is watched."""
    descent = kept.descent if kept else {}
    parent = descent["parent"] if descent else row.parent
    return parent if parent in named and parent != row.name else None


def _fork(
    row: EngineRow,
    place: RepositoryRow,
    kept: Mapping[int, StandingRow],
    parents: Mapping[str, str | None],
    released: Mapping[int, str],
) -> ShownFork:
    standing = kept.get(place.id or 0)
    return ShownFork(
        id=place.id or 0,
        engine=row.name,
        full_name=place.full_name,
        parent=parents[row.name],
        upstream=_upstream(row.name, parents),
        retired=row.retired,
        branches=tuple(row.branches),
        description=place.description,
        stars=place.stars,
        archived=place.archived,
        state=place.state,
        pushed_at=place.pushed_at,
        last_seen_at=place.last_seen_at,
        standing=_standing(standing) if standing and standing.descent else None,
        score=_score(place),
        latest_release=released.get(place.github_id or 0, ""),
    )


def _upstream(name: str, parents: Mapping[str, str | None]) -> str:
    """The eldest of the line; in a circle, the first by name, so that all agree."""
    line = [name]
    while (parent := parents.get(line[-1])) is not None:
        if parent in line:
            return min(line[line.index(parent) :])
        line.append(parent)
    return line[-1]


def _standing(row: StandingRow) -> Standing:
    descent, can = row.descent, row.capability
    return Standing(
        branch=row.branch,
        head=row.head,
        worked_out_at=row.worked_out_at,
        committed_at=_moment(descent.get("committed_at")),
        from_upstream=_distance(descent.get("from_upstream")),
        from_parent=_distance(descent.get("from_parent")),
        own_patches=descent.get("own_patches", 0),
        own_authors=descent.get("own_authors", 0),
        patches_beyond_parent=descent.get("patches_beyond_parent", 0),
        backports=descent.get("backports", 0),
        last_sync=_sync(descent.get("last_sync")),
        absorbed=tuple(ShownAbsorbed(**each) for each in descent.get("absorbed", ())),
        abilities=tuple(_abilities(can)),
        problem=can.get("problem", ""),
    )


def _abilities(can: Mapping[str, Any]) -> Iterable[Ability]:
    upstream, parent = (can.get(f"beyond_{base}") or {} for base in ("upstream", "parent"))
    for kind, understood in can.get("understood", {}).items():
        yield Ability(kind, understood, _beyond(upstream.get(kind)), _beyond(parent.get(kind)))


def _beyond(stored: Mapping[str, Any] | None) -> Beyond | None:
    return None if stored is None else Beyond(stored["count"], tuple(stored["names"]))


def _distance(stored: Mapping[str, Any] | None) -> ShownDistance | None:
    if stored is None:
        return None
    # Rows of earlier releases hold counts of unrelated histories too.
    return ShownDistance(**stored) if stored["merge_base"] else ShownDistance(None, None, None)


def _sync(stored: Mapping[str, Any] | None) -> ShownSync | None:
    if stored is None:
        return None
    moments = {key: datetime.fromisoformat(stored[key]) for key in ("upstream_at", "brought_at")}
    return ShownSync(**{**stored, **moments})


def _moment(text: str | None) -> datetime | None:
    return datetime.fromisoformat(text) if text else None


def _issues(session: Session, rows: Iterable[LinkedIssueRow]) -> tuple[ShownIssue, ...]:
    """Under the name that a repository has now: its old one may be somebody else's."""
    rows = list(rows)
    blocked = {
        row.full_name.lower() for row in forks.repositories(session, states=(forks.BLOCKED,))
    }
    places = forks.known_ids(session, {int(row.facts.get("repo_id") or 0) for row in rows})
    names = {number: place.full_name for number, place in places.items()}
    return tuple(
        ShownIssue(
            full_name=(name := names.get(int(row.facts.get("repo_id") or 0), row.full_name)),
            number=row.number,
            kind=row.kind,
            state=row.state,
            title=row.title,
            note=row.note,
            moved_at=row.moved_at,
            repository_state=forks.BLOCKED if name.lower() in blocked else forks.KNOWN,
        )
        for row in rows
    )


def _score(row: RepositoryRow) -> ShownScore | None:
    stored = row.facts.get(forks.SCORE)
    if not stored:
        return None
    return ShownScore(
        score=float(stored["score"]),
        reasons=tuple(stored["reasons"]),
        shut_out=str(stored["shut_out"]),
        worked_out_at=datetime.fromisoformat(stored["worked_out_at"]),
    )


def _other(row: RepositoryRow, parents: Mapping[int, RepositoryRow]) -> OtherFork:
    parent = parents.get(row.parent_github_id or 0)
    return OtherFork(
        full_name=row.full_name,
        parent=parent.full_name if parent else None,
        tier=row.tier,
        stars=row.stars,
        pushed_at=row.pushed_at,
        archived=row.archived,
        state=row.state,
        description=row.description,
        score=_score(row),
    )
