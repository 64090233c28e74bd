"""Queries on what history says of questions that could be asked, and of hours that are spent."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

from sqlalchemy import func
from sqlmodel import Session, col, select

from jobs.model import Blame, Kind, State, Validity
from jobs.planner import JobRequest
from jobs.planning.plan import Asked
from jobs.planning.world import Budget, SeriesPast, World
from jobs.planning.worth import UNKNOWN_SECONDS
from jobs.store import catalog, rules
from jobs.store.durations import Durations
from jobs.store.work import LIVE
from jobs.tables import JobRow, ModelFileRow, ResultRow

CHUNK = 500
"""Values of one IN list; every database of ours takes so many."""

FORGOTTEN = (State.CANCELLED.value, State.SUPERSEDED.value, State.EXPIRED.value)


def with_history(session: Session, world: World, asked: Asked) -> World:
    """The same with what was tried, failed and measured of these questions."""
    tried, waiting, failed = _jobs_of(session, asked.identities)
    return replace(
        world,
        tried=tried,
        waiting=waiting,
        failed=failed,
        series=_series(session, asked.series),
    )


def budgets(session: Session, now: datetime, *, hours: float = 0.0) -> tuple[Budget, ...]:
    """The budgets of watch lists, and `hours` a day for each rig that has none; 0 for no bound."""
    known = [
        Budget(row.hours_per_day * 3600, rig=row.rig, source=row.source)
        for row in rules.budgets(session)
    ]
    bounded = {budget.rig for budget in known}
    if hours:
        rigs = (row.name for row in catalog.rigs(session))
        known += [Budget(hours * 3600, rig=name) for name in rigs if name not in bounded]
    if not known:
        return ()
    spent = used_today(session, now)
    for asks, seconds in to_come(session).items():
        spent[asks] = spent.get(asks, 0.0) + seconds
    return tuple(replace(budget, spent=drawn(budget, spent)) for budget in known)


def drawn(budget: Budget, seconds: Mapping[tuple[str, str], float]) -> float:
    """What of these, by rig and source, draws on a budget."""
    asks = seconds.items()
    return sum(each for (rig, source), each in asks if budget.covers(rig=rig, source=source))


def has_room(session: Session, asked: JobRequest, now: datetime, *, hours: float = 0.0) -> bool:
    """Whether the budgets of a bench's rig and source have its time left; a build draws on none."""
    if asked.kind is not Kind.BENCH:
        return True
    seconds = Durations(session).likely_seconds(asked)
    return all(
        budget.left >= (UNKNOWN_SECONDS if seconds is None else seconds)
        for budget in budgets(session, now, hours=hours)
        if budget.covers(rig=asked.payload["rig"], source=asked.source)
    )


def to_come(session: Session) -> dict[tuple[str, str], float]:
    """Seconds by rig and source of all benches that wait or run."""
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
    return {
        (queue.removeprefix("bench."), source): float(seconds)
        for queue, source, seconds in session.exec(waiting)
    }


def used_today(session: Session, now: datetime) -> dict[tuple[str, str], float]:
    """Seconds by rig and source of benches that ended today (UTC)."""
    spent: dict[tuple[str, str], float] = defaultdict(float)
    is_bench = JobRow.kind == Kind.BENCH.value
    ended = select(JobRow.queue, JobRow.source, JobRow.started_at, JobRow.finished_at).where(
        is_bench, col(JobRow.finished_at) >= day_of(now), col(JobRow.started_at).is_not(None)
    )
    for queue, source, started, finished in session.exec(ended):
        if started and finished:
            took = max(timedelta(0), finished - max(started, day_of(now)))
            spent[queue.removeprefix("bench."), source] += took.total_seconds()
    return dict(spent)


def day_of(now: datetime) -> datetime:
    """The start of the day that a budget counts, in UTC."""
    return now.astimezone(UTC).replace(hour=0, minute=0, second=0, microsecond=0)


def _jobs_of(
    session: Session, identities: Collection[str]
) -> tuple[frozenset[str], frozenset[str], dict[str, str]]:
    """Which of these ended, which are under way, and why the last attempt failed for good."""
    tried: set[str] = set()
    waiting: set[str] = set()
    failed: dict[str, str] = {}
    for some in _chunks(sorted(identities)):
        query = select(JobRow).where(col(JobRow.identity).in_(some))
        for row in session.exec(query.order_by(col(JobRow.id))):
            failed.pop(row.identity, None)
            if row.state in LIVE:
                waiting.add(row.identity)
            elif row.state not in FORGOTTEN:
                tried.add(row.identity)
            if row.state == State.FAILED.value and row.blame != Blame.INFRASTRUCTURE.value:
                failed[row.identity] = f"job {row.id} failed ({row.failure_class}): {row.message}"
    return frozenset(tried), frozenset(waiting), failed


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
