"""Reads what planning has to know from rows: the world, and what history says of its questions."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence
from datetime import datetime
from typing import Any

from sqlmodel import Session, and_, col, or_, select

from jobs.engines.registry import FAMILIES
from jobs.errors import Permanent
from jobs.estimates import Past
from jobs.fit.setup import Card
from jobs.fit.shape import Shape
from jobs.fit.stored import shape_in
from jobs.known_revisions import state_of_revision
from jobs.model import Kind, Lane, Revision, State, Trust, Validity
from jobs.planner import Weights
from jobs.planning.rules import Do, Rule
from jobs.planning.world import (
    KnownEngine,
    KnownFile,
    KnownRevision,
    KnownStack,
    World,
)
from jobs.store import catalog, rules, scenarios
from jobs.store.durations import Durations
from jobs.store.negatives import standing_identities, standing_questions
from jobs.store.targets import build_target
from jobs.store.work import LIVE
from jobs.tables import (
    EngineRow,
    JobRow,
    ModelFileRow,
    ResultRow,
    RevisionRow,
    RigRow,
    StackRow,
)

LEARNED_FROM = 300
"""So many of the newest benches tell which stacks fail."""

MOST_BEFORE = 20
"""So many unmeasured revisions before one are looked through for its baseline."""


def world(session: Session, now: datetime, *, negatives: Collection[str] = ()) -> World:
    """Everything but budgets and the history of single questions."""
    files = {row.name: known_file(row) for row in catalog.model_files(session)}
    engines = {row.id or 0: row for row in catalog.engines(session, retired=True)}
    known = {row.name: _engine(session, row) for row in engines.values()}
    return World(
        now=now,
        engines=known,
        stacks=tuple(
            _stack(row, engines[row.engine_id].name, files) for row in catalog.stacks(session)
        ),
        files=tuple(files.values()),
        cards={row.name: card for row in catalog.rigs(session) if (card := _card(row))},
        rules=tuple(_rule(row) for row in rules.rules(session)),
        negatives=standing_identities(session) | frozenset(negatives),
        questions=standing_questions(session),
        past=_past(session, known.values()),
        failures=_failures(session),
    )


def known_file(row: ModelFileRow) -> KnownFile:
    """A model file's row as planning sees it."""
    shape, fault = _shape(row)
    return KnownFile(
        weights=Weights(row.id or 0, row.name, row.sha256),
        role=str((row.facts or {}).get("role") or row.role),
        model_class=row.model_class,
        repo=str(row.source.get("repo") or ""),
        shape=shape,
        fault=fault,
    )


def known_revision(engine: EngineRow, row: RevisionRow) -> KnownRevision:
    """A revision's row as planning sees it."""
    value = Revision(
        engine=engine.name,
        family=engine.family,
        commit=row.commit,
        label=row.label,
        source=engine.repo or engine.package or "",
    )
    state = state_of_revision(
        engine.name,
        repo=engine.repo or "",
        label=row.label,
        commit=row.commit,
        day=row.committed_at.date() if row.committed_at else None,
    )
    return KnownRevision(row.id or 0, value, state, replaced=row.replaced)


def newest_revision(session: Session, engine_id: int) -> RevisionRow | None:
    """The revision of an engine that comes last."""
    query = select(RevisionRow).where(RevisionRow.engine_id == engine_id)
    last = (col(RevisionRow.order_key).desc(), col(RevisionRow.id).desc())
    return session.exec(query.order_by(*last).limit(1)).first()


def revision_before(session: Session, revision: RevisionRow) -> RevisionRow | None:
    """The last measured revision before this one, else one that is to be, else the last known.

    A head that was replaced before anybody measured it is nothing to compare with, unless a bench
    of it is under way and of no other.
    """
    older = (
        RevisionRow.engine_id == revision.engine_id,
        or_(
            col(RevisionRow.order_key) < revision.order_key,
            and_(
                col(RevisionRow.order_key) == revision.order_key,
                col(RevisionRow.id) < (revision.id or 0),
            ),
        ),
    )
    last = (col(RevisionRow.order_key).desc(), col(RevisionRow.id).desc())
    measured = (
        select(RevisionRow)
        .join(ResultRow, col(ResultRow.revision_id) == col(RevisionRow.id))
        .where(*older, ResultRow.validity == Validity.OK.value)
    )
    found = session.exec(measured.order_by(*last).limit(1)).first()
    if found is not None:
        return found
    known = session.exec(select(RevisionRow).where(*older).order_by(*last).limit(MOST_BEFORE)).all()
    awaited = _awaited(session, [row.id for row in known])
    standing = [row for row in known if not row.replaced]
    likely = (*(row for row in standing if row.id in awaited),)
    likely += (*(row for row in known if row.id in awaited), *standing)
    return next(iter(likely), None)


def _awaited(session: Session, revision_ids: Sequence[int | None]) -> set[int | None]:
    """Which of these revisions a bench is queued for."""
    query = select(JobRow.revision_id).where(
        col(JobRow.revision_id).in_(revision_ids),
        JobRow.kind == Kind.BENCH.value,
        col(JobRow.state).in_(LIVE),
    )
    return set(session.exec(query.distinct()))


def _shape(row: ModelFileRow) -> tuple[Shape | None, str]:
    if row.shape is None:
        return None, row.header_fault or "its header was not read yet"
    try:
        return shape_in(row.shape), ""
    except Permanent as damage:
        return None, damage.detail


def _engine(session: Session, row: EngineRow) -> KnownEngine:
    newest = newest_revision(session, row.id or 0)
    return KnownEngine(
        name=row.name,
        family=row.family,
        trust=Trust(row.trust),
        targets=tuple(build_target(entry) for entry in row.targets),
        retired=row.retired,
        drivable=row.family in FAMILIES,
        newest=known_revision(row, newest) if newest else None,
    )


def _stack(row: StackRow, engine: str, files: Mapping[str, KnownFile]) -> KnownStack:
    return KnownStack(
        name=row.name,
        engine=engine,
        target=files.get(row.target),
        drafter=files.get(row.drafter or ""),
        projector=files.get(row.mmproj or ""),
        context_tokens=int(row.intent.get("context", 2048)),
        intent={key: value for key, value in row.intent.items() if key != "context"},
        flags=tuple(row.flags),
        env=dict(row.env),
        scenarios=tuple(row.scenarios),
        own_scenarios=scenarios.of_stack(row),
        wants_drafter=bool(row.drafter),
        wants_projector=bool(row.mmproj),
    )


def _rule(row: Any) -> Rule:
    filters = {name: tuple(values) for name, values in row.only.items()}
    lane = Lane[row.lane.upper()] if row.lane else None
    return Rule(
        name=row.name, on=row.asked, do=Do(row.does), lane=lane, priority=row.priority, **filters
    )


def _card(row: RigRow) -> Card | None:
    """What the watch list says of the card, else what the rig's worker reported."""
    reported = row.facts.get("vram_bytes")
    if row.memory_bytes:
        return Card(row.memory_bytes)
    if isinstance(reported, int) and reported > 0:
        return Card(reported)
    gib = row.facts.get("memory_gib")
    return Card(int(gib * 2**30)) if row.device == "cpu" and isinstance(gib, int | float) else None


def _past(session: Session, engines: Iterable[KnownEngine]) -> dict[str, list[Past]]:
    """What jobs took that the queues of these engines' targets have served."""
    durations = Durations(session)
    rigs = {target.name for engine in engines for target in engine.targets}
    return {queue: durations.of(queue) for queue in ("build", *(f"bench.{rig}" for rig in rigs))}


def _failures(session: Session) -> dict[tuple[str, str], int]:
    """How often each stack failed on a rig since it last did not."""
    query = select(JobRow).where(
        JobRow.kind == Kind.BENCH.value, col(JobRow.finished_at).is_not(None)
    )
    failures: dict[tuple[str, str], int] = defaultdict(int)
    succeeded: set[tuple[str, str]] = set()
    for row in session.exec(query.order_by(col(JobRow.finished_at).desc()).limit(LEARNED_FROM)):
        place = (str(row.payload.get("rig")), str(row.payload.get("stack")))
        if row.state == State.SUCCEEDED.value:
            succeeded.add(place)
        elif row.state == State.FAILED.value and place not in succeeded:
            failures[place] += 1
    return dict(failures)
