"""Queries on memory: model files with their shapes, boots with what their logs said; reads only.

A file of the model hub has the name by which commands find it there: `hf:OWNER/REPO/PATH`.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import date
from typing import Any

from sqlmodel import Session, col, select

from jobs.errors import Permanent, UsageError, did_you_mean
from jobs.fit.lessons import MeasuredBoot
from jobs.fit.shape import Shape
from jobs.fit.stored import layout_in, memory_in, shape_in
from jobs.known_engines import EngineState
from jobs.known_revisions import state_of_revision
from jobs.sightings import HubFileRow, HubRepositoryRow
from jobs.store import catalog, hub
from jobs.tables import BootRow, EngineRow, ModelFileRow, ResultRow, RevisionRow, RigRow
from jobs.terminal import printable

MOST_BOOTS = 500
"""So many of the newest boots teach; a page is built of them in a blink."""

MOST_MODELS = 1000
MOST_OF_HUB = 300
"""So many of the hub's newest files are offered; any other is found by its name."""
LONGEST_NAME = 200
HUB_FILE = "hf:"


@dataclass(frozen=True)
class KnownModel:
    """A model file as its row tells it; `fault` says why there is no shape."""

    name: str
    role: str
    model_class: str
    quantisation: str
    sha256: str
    size_bytes: int | None
    facts: Mapping[str, Any] | None
    shape: Shape | None
    fault: str


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


def known_models(session: Session) -> tuple[KnownModel, ...]:
    """Our model files by name, then the hub's by theirs as far as their headers were read."""
    query = select(ModelFileRow).order_by(col(ModelFileRow.name)).limit(MOST_MODELS)
    ours = [_known(row) for row in session.exec(query)]
    found = hub.shaped_files(session, limit=MOST_OF_HUB)
    of_hub = [_known_there(file, repository) for file, repository in found]
    offered = [each for each in of_hub if _can_be_typed(each.name)]
    return (*ours, *sorted(offered, key=lambda each: each.name))


def shape_named(session: Session, name: str, *, what: str) -> Shape:
    """The shape of a known model file; raises UsageError for one that has none."""
    row = session.exec(select(ModelFileRow).where(ModelFileRow.name == name)).first()
    found = _known(row) if row else _found_there(session, name)
    if found is None:
        raise UsageError(
            f"the {what} {name[:80]!r} is no known model file",
            advice=did_you_mean(name, _names(session)),
        )
    if found.shape is None:
        raise UsageError(
            f"the {what} {name[:80]!r} has no known shape: {found.fault}",
            advice="Choose a model whose header was read.",
        )
    return found.shape


def _names(session: Session) -> list[str]:
    """Names alone, so that a wrong one costs no reading of shapes."""
    query = select(ModelFileRow.name).order_by(col(ModelFileRow.name)).limit(MOST_MODELS)
    there = hub.shaped_names(session, limit=MOST_OF_HUB)
    of_hub = [f"{HUB_FILE}{full_name}/{path}" for full_name, path in there]
    return [*session.exec(query), *(name for name in of_hub if _can_be_typed(name))]


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
    models = {row.id: _known(row) for row in files}
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


def _found_there(session: Session, name: str) -> KnownModel | None:
    """The hub's file of that name; None where none was found, or its header not read."""
    owner, _, rest = name.removeprefix(HUB_FILE).partition("/")
    repo, _, path = rest.partition("/")
    if not name.startswith(HUB_FILE) or not path:
        return None
    rows = hub.shaped_files(session, limit=1, full_name=f"{owner}/{repo}", path=path)
    return next((_known_there(*each) for each in rows), None)


def _can_be_typed(name: str) -> bool:
    return len(name) <= LONGEST_NAME and name == printable(name).strip()


def _known_there(file: HubFileRow, repository: HubRepositoryRow) -> KnownModel:
    shape, fault = _shape_of(file.shape)
    return KnownModel(
        name=f"{HUB_FILE}{repository.full_name}/{file.path}",
        role=file.role,
        model_class="",
        quantisation=file.quantisation,
        sha256=file.sha256,
        size_bytes=file.size_bytes,
        facts=file.facts,
        shape=shape,
        fault=fault,
    )


def _shape_of(stored: Mapping[str, Any] | None) -> tuple[Shape | None, str]:
    """The stored shape, or why there is none."""
    if stored is None:
        return None, "its header was not read yet"
    try:
        return shape_in(stored), ""
    except Permanent as damage:
        return None, damage.detail


def _known(row: ModelFileRow) -> KnownModel:
    shape, damage = _shape_of(row.shape)
    fault = damage if row.shape is not None else row.header_fault or damage
    return KnownModel(
        name=row.name,
        role=str((row.facts or {}).get("role") or row.role),
        model_class=row.model_class,
        quantisation=row.quantisation,
        sha256=row.sha256,
        size_bytes=row.size_bytes,
        facts=row.facts,
        shape=shape,
        fault=fault,
    )


def _day(row: RevisionRow) -> date | None:
    return row.committed_at.date() if row.committed_at else None


def _count(facts: Mapping[str, Any], name: str) -> int | None:
    value = facts.get(name)
    return value if isinstance(value, int) else None
