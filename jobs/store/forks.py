"""Queries on repositories of the fork networks and on linked issues; the caller commits."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from datetime import datetime

from sqlmodel import Session, col, func, or_, select, update

from jobs.sightings import LinkedIssueRow, RepositoryRow
from jobs.store import source_states
from jobs.tables import EventRow

KNOWN, GONE, BLOCKED = "known", "gone", "blocked"
AWAY = {GONE: "is gone from GitHub", BLOCKED: "is blocked by GitHub: nobody sees it there"}
SCORE = "rank"
"""Where the facts of a repository keep its score: score, reasons, shut_out, worked_out_at."""
RELEASES = "github_releases:"
"""Under what is remembered of a look at a repository's releases."""
IS_FORK = col(RepositoryRow.parent_github_id).is_not(None)
DEEPEST = 20
"""No network is that deep; a ring of parents ends here."""


def repository(session: Session, github_id: int) -> RepositoryRow | None:
    """The repository with that numeric id of GitHub."""
    return session.exec(select(RepositoryRow).where(RepositoryRow.github_id == github_id)).first()


def depth_of(session: Session, github_id: int | None) -> int | None:
    """How many forks away from its root a repository is; None where a step is not known."""
    depth, row_id = 0, github_id
    while row_id is not None and depth < DEEPEST:
        row = repository(session, row_id)
        if row is None:
            return None
        if row.parent_github_id is None:
            return depth
        depth, row_id = depth + 1, row.parent_github_id
    return None


def repository_of_engine(session: Session, engine_id: int) -> RepositoryRow | None:
    """The repository an engine is built from."""
    query = select(RepositoryRow).where(RepositoryRow.engine_id == engine_id)
    return session.exec(query.order_by(col(RepositoryRow.id))).first()


def repositories_named(session: Session, full_name: str) -> list[RepositoryRow]:
    """Repositories last seen under that name; a name may have passed from one to another."""
    query = select(RepositoryRow).where(RepositoryRow.full_name == full_name)
    return list(session.exec(query.order_by(col(RepositoryRow.id))))


def repositories_like(session: Session, full_name: str) -> list[RepositoryRow]:
    """Repositories under a name as a person types it, those that are there first."""
    query = select(RepositoryRow).where(func.lower(RepositoryRow.full_name) == full_name.lower())
    return sorted(
        session.exec(query.order_by(col(RepositoryRow.id).desc())),
        key=lambda row: (row.state != KNOWN, row.github_id is None),
    )


def formerly(session: Session, full_name: str) -> RepositoryRow | None:
    """The repository that had that name before it was renamed, as the last such event tells."""
    query = select(EventRow).where(EventRow.kind == "repo_renamed")
    for event in session.exec(query.order_by(col(EventRow.id).desc())):
        if str(event.payload.get("old_name", "")).lower() == full_name.lower():
            return repository(session, int(event.payload.get("repo_id") or 0))
    return None


def repositories(
    session: Session, *, states: Collection[str] = (KNOWN,), closest_tier: int | None = None
) -> list[RepositoryRow]:
    """Repositories in those states, the closest watched first; only those up to a tier if asked."""
    query = select(RepositoryRow).where(col(RepositoryRow.state).in_(states))
    if closest_tier is not None:
        query = query.where(col(RepositoryRow.tier) <= closest_tier)
    return list(session.exec(query.order_by(col(RepositoryRow.tier), col(RepositoryRow.id))))


def candidates(session: Session, *, furthest_tier: int, limit: int) -> list[RepositoryRow]:
    """Forks that no engine is built from, closest tier first, then the latest push.

    One whose number shows nothing is left out: its name may be a stranger's by now.
    """
    query = select(RepositoryRow).where(
        RepositoryRow.state == KNOWN,
        RepositoryRow.misses == 0,
        col(RepositoryRow.engine_id).is_(None),
        col(RepositoryRow.github_id).is_not(None),
        col(RepositoryRow.parent_github_id).is_not(None),
        col(RepositoryRow.disabled).is_(False),
        col(RepositoryRow.tier) <= furthest_tier,
    )
    latest = col(RepositoryRow.pushed_at).desc().nulls_last()
    order = (col(RepositoryRow.tier), latest, col(RepositoryRow.id))
    return list(session.exec(query.order_by(*order).limit(limit)))


def asked_for_forks(session: Session, *, closest_tier: int) -> list[RepositoryRow]:
    """Repositories whose forks may be listed: closely watched ones and those that have forks."""
    query = select(RepositoryRow).where(
        col(RepositoryRow.state) == KNOWN,
        col(RepositoryRow.github_id).is_not(None),
        or_(col(RepositoryRow.tier) <= closest_tier, col(RepositoryRow.forks_count) > 0),
    )
    return list(session.exec(query.order_by(col(RepositoryRow.tier), col(RepositoryRow.id))))


def forks_of(session: Session, github_id: int) -> list[RepositoryRow]:
    """Direct forks of a repository, whatever became of them."""
    query = select(RepositoryRow).where(RepositoryRow.parent_github_id == github_id)
    return list(session.exec(query.order_by(col(RepositoryRow.id))))


def known_ids(session: Session, github_ids: Collection[int]) -> dict[int, RepositoryRow]:
    """Which of those repositories we know."""
    query = select(RepositoryRow).where(col(RepositoryRow.github_id).in_(github_ids))
    return {row.github_id: row for row in session.exec(query) if row.github_id is not None}


def mark_seen(session: Session, github_ids: Collection[int], now: datetime) -> None:
    """Those repositories were on a page that is whole; a blocked one is seen on its own page."""
    session.exec(
        update(RepositoryRow)
        .where(col(RepositoryRow.github_id).in_(github_ids), col(RepositoryRow.state) != BLOCKED)
        .values(last_seen_at=now)
    )


def unseen_forks(
    session: Session, github_id: int, *, since: datetime, beyond_tier: int
) -> Sequence[RepositoryRow]:
    """Direct forks beyond a tier, not known to be gone, that no page has shown since then."""
    return session.exec(
        select(RepositoryRow).where(
            RepositoryRow.parent_github_id == github_id,
            col(RepositoryRow.state) != GONE,
            col(RepositoryRow.tier) > beyond_tier,
            col(RepositoryRow.last_seen_at) < since,
        )
    ).all()


def latest_releases(session: Session) -> dict[int, str]:
    """The latest finished release of each repository whose releases are looked at, by number."""
    found = source_states.source_states(session, RELEASES)
    return {
        int(key.removeprefix(RELEASES)): str(row.cursor["latest"])
        for key, row in found.items()
        if row.cursor.get("latest")
    }


def linked_issues(session: Session) -> list[LinkedIssueRow]:
    """Issues and pull requests somebody wants to hear about."""
    query = select(LinkedIssueRow).order_by(
        col(LinkedIssueRow.full_name), col(LinkedIssueRow.number)
    )
    return list(session.exec(query))


def issues_linked_to(
    session: Session, github_id: int | None, full_name: str
) -> list[LinkedIssueRow]:
    """Those of one repository: by its number, or by its name while a link is bound to none."""
    return [
        row
        for row in linked_issues(session)
        if (
            row.facts.get("repo_id") == github_id
            if row.facts.get("repo_id")
            else row.full_name.lower() == full_name.lower()
        )
    ]


def linked_issue(session: Session, full_name: str, number: int) -> LinkedIssueRow | None:
    """One linked issue or pull request."""
    return session.exec(
        select(LinkedIssueRow).where(
            LinkedIssueRow.full_name == full_name, LinkedIssueRow.number == number
        )
    ).first()


def link_issue(
    session: Session, full_name: str, number: int, *, note: str, now: datetime
) -> tuple[LinkedIssueRow, bool]:
    """The link, and whether it is new; a note that is given replaces the old one."""
    row = linked_issue(session, full_name, number)
    is_new = row is None
    if row is None:
        row = LinkedIssueRow(full_name=full_name, number=number, created_at=now)
    if note:
        row.note = note
    session.add(row)
    session.flush()
    return row, is_new


def unlink_issue(session: Session, full_name: str, number: int) -> bool:
    """Forget a link; whether there was one."""
    row = linked_issue(session, full_name, number)
    if row is not None:
        session.delete(row)
    return row is not None
