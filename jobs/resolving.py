"""Which exact revision a name stands for: a commit, tag, branch, pull request or release."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import cast

from sqlalchemy import Engine
from sqlmodel import Session

from jobs import clock, git, git_refs, git_single
from jobs.config import Settings
from jobs.db import reading
from jobs.errors import UsageError
from jobs.git_names import is_pull
from jobs.git_refs import checked_ref
from jobs.store import catalog, origins
from jobs.tables import EngineRow, RevisionRow


@dataclass(frozen=True)
class Desk:
    """What submitting needs; `on_line` hears git's progress."""

    settings: Settings
    database: Engine
    on_line: Callable[[str], None] = lambda _line: None


def resolve(desk: Desk, engine: EngineRow, ref: str | None) -> RevisionRow:
    """The exact revision a name stands for, not stored yet where it is new."""
    if engine.repo:
        return _resolve_git(desk, engine, ref)
    with reading(desk.database) as session:
        if ref is not None:
            return catalog.revision_named(session, engine, ref)
        known = catalog.revisions_of(session, cast(int, engine.id))
    if not known:
        raise UsageError(
            f"no release of {engine.name} is known here",
            advice="`forkscout scout run` looks for new ones",
        )
    return known[-1]


def _resolve_git(desk: Desk, engine: EngineRow, ref: str | None) -> RevisionRow:
    with reading(desk.database) as session:
        origin = origins.origin_of(session, engine)
        known = catalog.revision_at(session, cast(int, engine.id), ref) if ref else None
    if origin.doubt:
        raise UsageError(origin.doubt, advice=origin.advice)
    if known is not None:
        return known
    url = git.repo_url(origin.repo)
    mirror = desk.settings.mirror_of(origin.repo)
    wanted = checked_ref(ref or (engine.branches[0] if engine.branches else "HEAD"))
    if not git.holds(mirror, wanted):
        git.update_mirror(mirror, url, desk.on_line, token=desk.settings.github_token)
    if is_pull(wanted):
        git_single.fetch_pull(mirror, url, wanted, token=desk.settings.github_token)
    commit = git.resolve(mirror, wanted)
    now = clock.now()
    return RevisionRow(
        engine_id=cast(int, engine.id),
        commit=commit.sha,
        label=commit.label,
        order_key=min(commit.stands_at, now).isoformat(),
        committed_at=min(commit.committed_at, now),
        proposed=not git_refs.is_merged(mirror, commit.sha),
        first_seen_at=now,
    )


def stored(session: Session, engine: EngineRow, revision: RevisionRow) -> RevisionRow:
    """Its row, made where it is new."""
    catalog.lock_engine(session, cast(int, engine.id))
    return catalog.add_revision(
        session,
        engine_id=cast(int, engine.id),
        commit=revision.commit,
        label=revision.label,
        order_key=revision.order_key,
        committed_at=revision.committed_at,
        proposed=revision.proposed,
        now=revision.first_seen_at,
    )
