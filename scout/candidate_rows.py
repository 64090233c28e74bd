"""Which candidates there are, and what is recorded of each; reads rows only."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime, timedelta

from sqlalchemy import Engine
from sqlmodel import Session

from jobs.db import reading
from jobs.errors import Transient
from jobs.git_network import BRANCH
from jobs.sightings import RepositoryRow, SourceStateRow
from jobs.store import forks, refs, source_states
from scout.candidate_values import SOURCE, Candidate, due, key_of
from scout.github.governor import Tier
from scout.kinship import Kin, root_of
from scout.yardsticks import Member

KEPT = 2_000
"""Candidates whose history is held; of more, those pushed to last."""
DROPPED_AFTER = timedelta(days=30)
DROPS = 20


def candidates_due(database: Engine, now: datetime) -> bool:
    """Whether a round has anything to look at or to drop."""
    with reading(database) as session:
        rows, states = known(session)
    return bool(due(rows, states, now=now) or long_gone(rows, states, now))


def known(session: Session) -> tuple[list[RepositoryRow], dict[str, SourceStateRow]]:
    """Candidates in the order they are looked at, and what is remembered of looks."""
    rows = forks.candidates(session, furthest_tier=Tier.CANDIDATE, limit=KEPT)
    return rows, source_states.source_states(session, f"{SOURCE}:")


def long_gone(
    rows: Sequence[RepositoryRow], states: Mapping[str, SourceStateRow], now: datetime
) -> list[int]:
    """Numbers of repositories that have not been candidates for long, some at a time."""
    kept = {key_of(row.id or 0) for row in rows}
    before = now - DROPPED_AFTER
    gone = [key for key, each in states.items() if key not in kept and each.updated_at < before]
    return [int(key.removeprefix(f"{SOURCE}:")) for key in gone[:DROPS]]


def candidate(session: Session, row: RepositoryRow, kin: Mapping[str, Kin]) -> Candidate:
    """The fork with its parent and the watched upstream it descends from.

    Raises `Transient` while no upstream of it was seen.
    """
    ours = {one.github_id: one for one in kin.values() if one.github_id is not None}
    root: str | None = None
    at, steps = row.parent_github_id, 0
    while root is None and at is not None and steps < forks.DEEPEST:
        above = forks.repository(session, at)
        root = root_of(ours[at].name, kin) if at in ours else None
        at, steps = above.parent_github_id if above else None, steps + 1
    top = ours.get(row.root_github_id or 0)
    root = root or (root_of(top.name, kin) if top else None)
    if root is None or kin[root].head is None:
        raise Transient(
            f"no upstream of {row.full_name} was seen",
            advice="Watch the repository it was forked from, then look again.",
        )
    parent = forks.repository(session, row.parent_github_id) if row.parent_github_id else None
    return Candidate(
        repository=row.id or 0,
        github_id=row.github_id or 0,
        full_name=row.full_name,
        root=root,
        default_branch=row.default_branch,
        pushed_at=row.pushed_at,
        parent=_member(session, parent) if parent else None,
        parent_name=parent.full_name if parent else "",
        refs=refs.refs_of(session, row.id or 0),
        named_at=row.last_seen_at,
    )


def _member(session: Session, row: RepositoryRow) -> Member:
    known = refs.refs_of(session, row.id or 0)
    head = known.get(f"{BRANCH}{row.default_branch}")
    return Member(row.full_name, row.id or 0, row.github_id or 0, known, head)
