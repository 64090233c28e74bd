"""Negatives as pages, commands and the API show them: frozen values, read whole; never commits."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import cast

from sqlmodel import Session, col, select

from jobs import negatives
from jobs.model import Kind
from jobs.negative_tables import NegativeMoveRow, NegativeRow
from jobs.negatives import Grounds, NegativeState
from jobs.sightings import RepositoryRow
from jobs.store import grounds
from jobs.store import negatives as store
from jobs.store.work import LIVE
from jobs.tables import JobRow, ModelFileRow, ResultRow

MOST_OVERTURNED = 100
MOST_OF_FORK = 20


@dataclass(frozen=True)
class ShownMove:
    """What moved, when, and the retest it led to or why it led to none."""

    kind: str
    says: str
    moved_at: datetime
    event_id: int | None
    job_id: int | None
    job_state: str | None
    refusal: str


@dataclass(frozen=True)
class ShownNegative:
    """One negative; `left` says in words what is left of its days, `stood` how long it stood.

    `retest_id` is the job that asks again now, `result_id` what overturned it.
    """

    id: int
    state: str
    kind: str
    engine: str
    what: str
    rig: str
    stack: str
    scenario: str
    context_tokens: int
    outcome: str
    failure_class: str
    blame: str
    why: str
    source: str
    preflight: str
    days: float
    created_at: datetime
    expires_at: datetime
    left: str
    left_seconds: float
    stood: str
    follows_id: int | None
    ended_at: datetime | None
    ended_by: str
    job_id: int | None
    overturned_by: int | None
    result_id: int | None
    result_tps: float | None
    retest_id: int | None
    target: str
    drafter: str
    projector: str
    grounds: Grounds
    moves: tuple[ShownMove, ...]

    @property
    def share_left(self) -> float:
        """How much of its days is left, from 0 to 1."""
        return min(1.0, max(0.0, self.left_seconds / (self.days * 86400)))

    @property
    def days_spoken(self) -> str:
        """How long it stands, in words."""
        return negatives.counted_days(self.days)

    @property
    def depended_on(self) -> tuple[tuple[str, str], ...]:
        """What the answer depended on, as far as it is known, by the name people use."""
        held = self.grounds
        scenario = (self.scenario or "any") if self.kind == Kind.BENCH else ""
        facts = {
            "revision": _words(held.label, held.commit),
            "target": _words(held.target, held.target_sha256),
            "drafter": _words(held.drafter, held.drafter_sha256),
            "mmproj": _words(held.projector, held.projector_sha256),
            "context": f"{self.context_tokens:,} tokens" if self.context_tokens else "",
            "scenario": scenario,
            "flags": _words(*(f"{k}={v}" for k, v in sorted(held.env.items())), *held.flags),
            "driver": held.driver,
            "memory": f"{held.vram_bytes / 2**30:.1f} GiB" if held.vram_bytes else "",
            "rig": _words(self.rig, held.fingerprint),
            "sandbox": held.sandbox,
            "open issues": ", ".join(held.issues),
        }
        return tuple((name, value) for name, value in facts.items() if value)


def _words(*words: str) -> str:
    return " ".join(word for word in words if word)


@dataclass(frozen=True)
class Negatives:
    """What stands, and what was overturned, side by side."""

    standing: tuple[ShownNegative, ...]
    overturned: tuple[ShownNegative, ...]


def board(session: Session, now: datetime, *, engine_id: int | None = None) -> Negatives:
    """All that stands, soonest date first, and the newest that were overturned."""
    standing = store.listed(session, states=(NegativeState.STANDING,), engine_id=engine_id)
    overturned = store.listed(
        session,
        states=(NegativeState.OVERTURNED,),
        engine_id=engine_id,
        limit=MOST_OVERTURNED,
    )
    return Negatives(tuple(shown(session, standing, now)), tuple(shown(session, overturned, now)))


def of_repository(session: Session, repository_id: int, now: datetime) -> tuple[ShownNegative, ...]:
    """What stands of the engine that is built from that repository."""
    place = session.get(RepositoryRow, repository_id)
    if place is None or place.engine_id is None:
        return ()
    standing = (NegativeState.STANDING,)
    rows = store.listed(session, states=standing, engine_id=place.engine_id, limit=MOST_OF_FORK)
    return tuple(shown(session, rows, now))


def chain(session: Session, number: int, now: datetime) -> tuple[ShownNegative, ...]:
    """A negative with all before and after it, oldest first; empty where there is none."""
    row = session.get(NegativeRow, number)
    return tuple(shown(session, store.history(session, row), now)) if row else ()


def shown(session: Session, rows: Sequence[NegativeRow], now: datetime) -> list[ShownNegative]:
    """These negatives, in this order."""
    engines = store.engine_names(session, rows)
    moves = _moves(session, rows)
    results = _results(session, rows)
    names = _files(session, rows)
    return [
        _shown(row, engines, moves.get(cast(int, row.id), ()), results, names, now) for row in rows
    ]


def _shown(
    row: NegativeRow,
    engines: Mapping[int, str],
    moves: Sequence[ShownMove],
    results: dict[int, ResultRow],
    names: dict[int, str],
    now: datetime,
) -> ShownNegative:
    engine = engines[row.engine_id]
    overturned_by = row.overturned_by if row.state == NegativeState.OVERTURNED else None
    result = results.get(overturned_by or 0)
    live = [move.job_id for move in moves if move.job_state in LIVE]
    ended = row.ended_at or now
    return ShownNegative(
        id=cast(int, row.id),
        state=row.state,
        kind=row.kind,
        engine=engine,
        what=grounds.label(row.kind, engine, row.stack, row.rig, row.context_tokens),
        rig=row.rig,
        stack=row.stack,
        scenario=row.scenario,
        context_tokens=row.context_tokens,
        outcome=row.outcome,
        failure_class=row.failure_class,
        blame=row.blame,
        why=row.why,
        source=row.source,
        preflight=row.preflight,
        days=row.days,
        created_at=row.created_at,
        expires_at=row.expires_at,
        left=negatives.left(row.expires_at, now),
        left_seconds=(row.expires_at - now).total_seconds(),
        stood=negatives.span(ended - row.created_at),
        follows_id=row.follows_id,
        ended_at=row.ended_at,
        ended_by=row.ended_by,
        job_id=row.job_id,
        overturned_by=overturned_by,
        result_id=result.id if result else None,
        result_tps=result.decode_tps if result else None,
        retest_id=live[-1] if live else None,
        target=names.get(row.target_file_id or 0, ""),
        drafter=names.get(row.drafter_file_id or 0, ""),
        projector=names.get(row.projector_file_id or 0, ""),
        grounds=grounds.read(row),
        moves=tuple(moves),
    )


def _moves(session: Session, rows: Iterable[NegativeRow]) -> dict[int, list[ShownMove]]:
    numbers = [cast(int, row.id) for row in rows]
    query = (
        select(NegativeMoveRow, JobRow.state)
        .join(JobRow, col(JobRow.id) == col(NegativeMoveRow.job_id), isouter=True)
        .where(col(NegativeMoveRow.negative_id).in_(numbers))
        .order_by(col(NegativeMoveRow.id))
    )
    found: dict[int, list[ShownMove]] = {}
    for move, state in session.exec(query):
        found.setdefault(move.negative_id, []).append(
            ShownMove(
                kind=move.kind,
                says=move.says,
                moved_at=move.moved_at,
                event_id=move.event_id,
                job_id=move.job_id,
                job_state=state,
                refusal=move.refusal,
            )
        )
    return found


def _results(session: Session, rows: Iterable[NegativeRow]) -> dict[int, ResultRow]:
    """Results of the jobs that overturned these, by job."""
    numbers = [row.overturned_by for row in rows if row.overturned_by is not None]
    query = select(ResultRow).where(col(ResultRow.job_id).in_(numbers))
    return {row.job_id: row for row in session.exec(query)}


def _files(session: Session, rows: Iterable[NegativeRow]) -> dict[int, str]:
    numbers = {
        number
        for row in rows
        for number in (row.target_file_id, row.drafter_file_id, row.projector_file_id)
        if number is not None
    }
    query = select(ModelFileRow.id, ModelFileRow.name).where(
        col(ModelFileRow.id).in_(sorted(numbers))
    )
    return {cast(int, number): name for number, name in session.exec(query)}
