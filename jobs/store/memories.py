"""Queries on memory: boots with what their logs said, engines with what was read; reads only."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import date
from typing import Any

from sqlmodel import Session, col, select

from jobs.errors import Permanent
from jobs.fit.lessons import MeasuredBoot
from jobs.fit.stored import layout_in, memory_in
from jobs.known_engines import EngineState
from jobs.known_revisions import state_of_revision
from jobs.store import catalog
from jobs.store.known_models import of_row
from jobs.tables import BootRow, EngineRow, ModelFileRow, ResultRow, RevisionRow, RigRow

MOST_BOOTS = 500
"""So many of the newest boots teach; a page is built of them in a blink."""


@dataclass(frozen=True)
class Heard:
    """Boots that said something of their memory, newest first; the others are only counted."""

    boots: tuple[MeasuredBoot, ...]
    shapeless: int = 0


@dataclass(frozen=True)
class WatchedState:
    """The state behind a watched engine's revision, and where its source is."""

    state: EngineState
    repo: str
    commit: str


def heard(session: Session) -> Heard:
    """What the newest boots of targets that ran alone said of their memory."""
    query = (
        select(BootRow, ResultRow, RevisionRow, EngineRow)
        .join(ResultRow, col(BootRow.result_id) == col(ResultRow.id))
        .join(RevisionRow, col(ResultRow.revision_id) == col(RevisionRow.id))
        .join(EngineRow, col(ResultRow.engine_id) == col(EngineRow.id))
        .where(
            col(BootRow.memory).is_not(None),
            col(BootRow.layout).is_not(None),
            col(ResultRow.drafter_file_id).is_(None),
            col(ResultRow.projector_file_id).is_(None),
        )
        .order_by(col(BootRow.id).desc())
        .limit(MOST_BOOTS)
    )
    rows = list(session.exec(query))
    wanted = {result.model_file_id for _, result, _, _ in rows}
    files = session.exec(select(ModelFileRow).where(col(ModelFileRow.id).in_(wanted)))
    models = {row.id: of_row(row) for row in files}
    rigs = {row.id: row.name for row in session.exec(select(RigRow))}
    boots, shapeless = [], 0
    for boot, result, revision, engine in rows:
        model = models[result.model_file_id]
        if model.shape is None:
            shapeless += 1
            continue
        try:
            layout, memory = layout_in(boot.layout or {}), memory_in(boot.memory or {})
        except Permanent:
            shapeless += 1
            continue
        boots.append(
            MeasuredBoot(
                result_id=result.id or 0,
                label=revision.label,
                rig=rigs[result.rig_id],
                measured_at=boot.started_at,
                state=state_of_revision(
                    engine.name,
                    repo=engine.repo or "",
                    label=revision.label,
                    commit=revision.commit,
                    day=_day(revision),
                ),
                model=model.name,
                shape=model.shape,
                layout=layout,
                memory=memory,
                peak_memory_bytes=boot.peak_memory_bytes,
                offloaded_layers=_count(boot.facts, "offloaded_layers"),
                total_layers=_count(boot.facts, "total_layers"),
            )
        )
    return Heard(tuple(boots), shapeless)


def watched_state(session: Session, text: str) -> WatchedState | None:
    """What `engine` or `engine@revision` means among watched engines; None for a strange engine.

    Raises UsageError where the engine has no such revision.
    """
    name, _, ref = text.partition("@")
    known = {row.name: row for row in catalog.engines(session, retired=True)}
    engine = known.get(name)
    if engine is None:
        return None
    repo = engine.repo or ""
    row = catalog.revision_named(session, engine, ref) if ref else None
    if row is None:
        return WatchedState(state_of_revision(name, repo=repo), repo, "")
    state = state_of_revision(name, repo=repo, label=row.label, commit=row.commit, day=_day(row))
    return WatchedState(state, repo, row.commit)


def _day(row: RevisionRow) -> date | None:
    return row.committed_at.date() if row.committed_at else None


def _count(facts: Mapping[str, Any], name: str) -> int | None:
    value = facts.get(name)
    return value if isinstance(value, int) else None
