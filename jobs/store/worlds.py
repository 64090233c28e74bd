"""Reads what planning has to know from rows: the world, and what history says of its questions."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from statistics import median
from typing import Any

from sqlalchemy import func
from sqlmodel import Session, col, select

from jobs.engines.registry import FAMILIES
from jobs.errors import Permanent
from jobs.fit.setup import Card
from jobs.fit.shape import Shape
from jobs.fit.stored import shape_in
from jobs.known_revisions import state_of_revision
from jobs.model import Blame, BuildTarget, Kind, Lane, Revision, State, Trust, Validity
from jobs.planner import Weights
from jobs.planning.plan import Asked
from jobs.planning.rules import Do, Rule
from jobs.planning.world import (
    Budget,
    KnownEngine,
    KnownFile,
    KnownRevision,
    KnownStack,
    SeriesPast,
    World,
)
from jobs.planning.worth import UNKNOWN_SECONDS
from jobs.store import catalog, rules
from jobs.store.work import LIVE
from jobs.tables import (
    BuildRow,
    EngineRow,
    JobRow,
    ModelFileRow,
    ResultRow,
    RevisionRow,
    RigRow,
    StackRow,
)

LEARNED_FROM = 300
"""So many of the newest benches tell how long one takes."""

CHUNK = 500
"""Values of one IN list; every database of ours takes so many."""

FINAL = (State.FAILED.value, State.DEAD.value)
FORGOTTEN = (State.CANCELLED.value, State.SUPERSEDED.value, State.EXPIRED.value)


def world(session: Session, now: datetime, *, negatives: Collection[str] = ()) -> World:
    """Everything but budgets and the history of single questions."""
    files = {row.name: known_file(row) for row in catalog.model_files(session)}
    engines = {row.id or 0: row for row in catalog.engines(session, retired=True)}
    bench_seconds, failures = _lengths(session)
    return World(
        now=now,
        engines={row.name: _engine(session, row) for row in engines.values()},
        stacks=tuple(
            _stack(row, engines[row.engine_id].name, files) for row in catalog.stacks(session)
        ),
        files=tuple(files.values()),
        cards={row.name: card for row in catalog.rigs(session) if (card := _card(row))},
        rules=tuple(_rule(row) for row in rules.rules(session)),
        negatives=frozenset(negatives),
        bench_seconds=bench_seconds,
        build_seconds=_build_seconds(session),
        failures=failures,
    )


def with_history(
    session: Session, world: World, asked: Asked, *, budget_hours: float = 0.0
) -> World:
    """The same with what was tried, failed and measured of these questions, and what budgets hold.

    `budget_hours` a day go for every rig that has no budget of its own, 0 for none.
    """
    tried, failed = _jobs_of(session, asked.identities)
    return replace(
        world,
        tried=tried,
        failed=failed,
        series=_series(session, asked.series),
        budgets=_budgets(session, catalog.rigs(session), world.now, hours=budget_hours),
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
    return KnownRevision(row.id or 0, value, state)


def newest_revision(session: Session, engine_id: int) -> RevisionRow | None:
    """The revision of an engine that comes last."""
    query = select(RevisionRow).where(RevisionRow.engine_id == engine_id)
    last = (col(RevisionRow.order_key).desc(), col(RevisionRow.id).desc())
    return session.exec(query.order_by(*last).limit(1)).first()


def revision_before(session: Session, revision: RevisionRow) -> RevisionRow | None:
    """The last measured revision before this one, else the last that is known."""
    older = (
        RevisionRow.engine_id == revision.engine_id,
        col(RevisionRow.order_key) < revision.order_key,
    )
    last = (col(RevisionRow.order_key).desc(), col(RevisionRow.id).desc())
    measured = (
        select(RevisionRow)
        .join(ResultRow, col(ResultRow.revision_id) == col(RevisionRow.id))
        .where(*older, ResultRow.validity == Validity.OK.value)
    )
    for query in (measured, select(RevisionRow).where(*older)):
        found = session.exec(query.order_by(*last).limit(1)).first()
        if found is not None:
            return found
    return None


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
        targets=tuple(
            BuildTarget(
                name=str(entry["rig"]),
                via=str(entry["via"]),
                cuda_arch=entry.get("cuda_arch"),
                options=tuple(entry.get("options") or ()),
            )
            for entry in row.targets
        ),
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


def _lengths(
    session: Session,
) -> tuple[dict[tuple[str, str, str], float], dict[tuple[str, str], int]]:
    """How long benches took, and how often each stack failed since it last did not."""
    query = select(JobRow).where(
        JobRow.kind == Kind.BENCH.value, col(JobRow.finished_at).is_not(None)
    )
    seconds: dict[tuple[str, str, str], list[float]] = defaultdict(list)
    failures: dict[tuple[str, str], int] = defaultdict(int)
    succeeded: set[tuple[str, str]] = set()
    for row in session.exec(query.order_by(col(JobRow.finished_at).desc()).limit(LEARNED_FROM)):
        rig, stack = str(row.payload.get("rig")), str(row.payload.get("stack"))
        scenario = str(row.payload.get("scenario"))
        if row.state == State.SUCCEEDED.value and row.started_at and row.finished_at:
            took = (row.finished_at - row.started_at).total_seconds()
            succeeded.add((rig, stack))
            for name in (stack, ""):
                seconds[rig, scenario, name].append(took)
        elif row.state == State.FAILED.value and (rig, stack) not in succeeded:
            failures[rig, stack] += 1
    return {key: median(found) for key, found in seconds.items()}, dict(failures)


def _build_seconds(session: Session) -> dict[tuple[str, str], float]:
    query = (
        select(EngineRow.family, BuildRow.target, BuildRow.duration_seconds)
        .join(RevisionRow, col(RevisionRow.engine_id) == col(EngineRow.id))
        .join(BuildRow, col(BuildRow.revision_id) == col(RevisionRow.id))
        .order_by(col(BuildRow.id).desc())
        .limit(LEARNED_FROM)
    )
    found: dict[tuple[str, str], list[float]] = defaultdict(list)
    for family, target, took in session.exec(query):
        found[family, target].append(took)
    return {key: median(values) for key, values in found.items()}


def _budgets(
    session: Session, rigs: Iterable[RigRow], now: datetime, *, hours: float
) -> tuple[Budget, ...]:
    """The budgets of watch lists, and the setting's for each rig that has none."""
    known = [
        Budget(row.hours_per_day * 3600, rig=row.rig, source=row.source)
        for row in rules.budgets(session)
    ]
    bounded = {budget.rig for budget in known}
    if hours:
        known += [Budget(hours * 3600, rig=row.name) for row in rigs if row.name not in bounded]
    if not known:
        return ()
    spent = _spent(session, now)
    return tuple(
        replace(
            budget,
            spent=sum(
                seconds
                for (rig, source), seconds in spent.items()
                if budget.covers(rig=rig, source=source)
            ),
        )
        for budget in known
    )


def _spent(session: Session, now: datetime) -> dict[tuple[str, str], float]:
    """Seconds by rig and source: of benches that ended today (UTC), and of all that are to come."""
    spent: dict[tuple[str, str], float] = defaultdict(float)
    is_bench = JobRow.kind == Kind.BENCH.value
    waiting = (
        select(
            JobRow.queue,
            JobRow.source,
            func.sum(func.coalesce(JobRow.estimate_seconds, UNKNOWN_SECONDS)),
        )
        .where(is_bench, col(JobRow.state).in_(LIVE))
        .group_by(JobRow.queue, JobRow.source)
    )
    for queue, source, seconds in session.exec(waiting):
        spent[queue.removeprefix("bench."), source] += seconds
    ended = select(JobRow.queue, JobRow.source, JobRow.started_at, JobRow.finished_at).where(
        is_bench, col(JobRow.finished_at) >= day_of(now), col(JobRow.started_at).is_not(None)
    )
    for queue, source, started, finished in session.exec(ended):
        if started and finished:
            took = max(timedelta(0), finished - max(started, day_of(now)))
            spent[queue.removeprefix("bench."), source] += took.total_seconds()
    return spent


def day_of(now: datetime) -> datetime:
    """The start of the day that a budget counts, in UTC."""
    return now.astimezone(UTC).replace(hour=0, minute=0, second=0, microsecond=0)


def _jobs_of(
    session: Session, identities: Collection[str]
) -> tuple[frozenset[str], dict[str, str]]:
    """Which of these were queued, and of which the last attempt failed for good, and why."""
    tried: set[str] = set()
    failed: dict[str, str] = {}
    for some in _chunks(sorted(identities)):
        query = select(JobRow).where(col(JobRow.identity).in_(some))
        for row in session.exec(query.order_by(col(JobRow.id))):
            failed.pop(row.identity, None)
            if row.state not in FORGOTTEN:
                tried.add(row.identity)
            if row.state == State.FAILED.value and row.blame != Blame.INFRASTRUCTURE.value:
                failed[row.identity] = f"job {row.id} failed ({row.failure_class}): {row.message}"
    return frozenset(tried), failed


def _series(session: Session, series: Collection[str]) -> dict[str, SeriesPast]:
    past: dict[str, SeriesPast] = {}
    groups: dict[str, tuple[Any, ...]] = {}
    is_ok = ResultRow.validity == Validity.OK.value
    for some in _chunks(sorted(series)):
        query = (
            select(ResultRow, ModelFileRow.model_class)
            .join(ModelFileRow, col(ModelFileRow.id) == col(ResultRow.model_file_id))
            .where(is_ok, col(ResultRow.series).in_(some))
        )
        for row, model_class in session.exec(query.order_by(col(ResultRow.id))):
            before = past.get(row.series, SeriesPast())
            groups[row.series] = (model_class, row.rig_id, row.scenario, row.context_tokens)
            past[row.series] = SeriesPast(
                revisions=before.revisions | {row.revision_id},
                last_tps=row.decode_tps,
                last_at=row.created_at,
            )
    best = {group: _record(session, group) for group in set(groups.values())}
    return {name: replace(each, best_tps=best[groups[name]]) for name, each in past.items()}


def _record(session: Session, group: tuple[Any, ...]) -> float | None:
    model_class, rig_id, scenario, context_tokens = group
    query = (
        select(func.max(ResultRow.decode_tps))
        .join(ModelFileRow, col(ModelFileRow.id) == col(ResultRow.model_file_id))
        .where(
            ResultRow.validity == Validity.OK.value,
            ModelFileRow.model_class == model_class,
            ResultRow.rig_id == rig_id,
            ResultRow.scenario == scenario,
            ResultRow.context_tokens == context_tokens,
        )
    )
    return session.exec(query).one()


def _chunks(values: list[str]) -> Iterable[list[str]]:
    return (values[at : at + CHUNK] for at in range(0, len(values), CHUNK))
