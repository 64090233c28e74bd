"""Asks again what stands as impossible once something it depended on moved; runs nothing."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence, Set
from dataclasses import dataclass, replace
from datetime import datetime
from typing import cast

from sqlmodel import Session, select

from jobs import negatives, planner
from jobs.errors import UsageError
from jobs.model import Kind, Lane
from jobs.negative_tables import NegativeMoveRow, NegativeRow
from jobs.negatives import DRAFTER, Move
from jobs.planner import JobRequest, Weights
from jobs.planning.chains import BenchWish, Files, chain
from jobs.planning.pairs import speculation_of
from jobs.scenarios import DEFAULT_SCENARIO, SCENARIOS, SHIPPED, Scenario, rung_of
from jobs.store import catalog, grounds, histories, noted, scenarios, superseding, work, worlds
from jobs.store import negatives as store
from jobs.store.grounds import files_of
from jobs.store.permits import commit_for, refusal, word_missing
from jobs.store.targets import target_for
from jobs.store.work import HELD
from jobs.tables import EngineRow, JobRow, ModelFileRow, RevisionRow, StackRow


@dataclass(frozen=True)
class Again:
    """What a retest asks with, where it is not what failed; `by_hand` is a person's approval.

    `swept` says that the moves are all that a sweep reads: what it no longer reads has moved back.
    `budget_hours` a day go for a rig that has no budget of its own, 0 for no bound.
    """

    revision: RevisionRow | None = None
    drafter: ModelFileRow | None = None
    event_id: int | None = None
    by_hand: bool = False
    swept: bool = False
    budget_hours: float = 0.0


def look(session: Session, now: datetime, *, budget_hours: float = 0.0) -> list[JobRow]:
    """Retests of what expired, or whose rig, flags or engine moved without an event."""
    rows = store.standing(session)
    if not rows:
        return []
    work.take_turn(session)
    seen = grounds.scenery(session, rows, now)
    jobs: list[JobRow] = []
    for row in rows:
        then = grounds.read(row)
        today = seen.now(row, then)
        moves = list(negatives.changed(then, today))
        if moves:
            failed = store.failed_before(session, row)
            moves = list(negatives.changed(then, today, failed=failed))
        if then.commit and today.place > then.place:
            moves.append(negatives.advanced(seen.engines[row.engine_id].name, then, today))
        if ended := negatives.expired(row.expires_at, row.days, now):
            moves.append(ended)
        jobs += requeue(session, row, moves, now, Again(swept=True, budget_hours=budget_hours))
    return jobs


def retry(session: Session, number: int, now: datetime) -> list[JobRow]:
    """Ask again because a person wants to know."""
    row = store.negative(session, number)
    if row.state != store.STANDING:
        raise UsageError(
            f"negative {number} stands no longer ({row.state})",
            advice=f"see `forkscout negatives show {number}`",
        )
    work.take_turn(session)
    live = noted.live_retest(session, number)
    if live is not None:
        raise UsageError(
            f"negative {number} is being tried again already",
            advice=f"see `forkscout show {live.id}`",
        )
    engine = session.get_one(EngineRow, row.engine_id)
    if why := refusal(engine, by_hand=True):
        raise UsageError(why, advice="change the watch list, then try again")
    return requeue(session, row, [negatives.asked_by_hand(now)], now, Again(by_hand=True))


def requeue(
    session: Session,
    row: NegativeRow,
    moves: Iterable[Move],
    now: datetime,
    again: Again | None = None,
) -> list[JobRow]:
    """Note what moved and ask again, once at a time; the jobs of the retest that are new.

    A retest that still waits gives way to one that asks with more; one that runs is waited for, and
    what moved meanwhile is looked at afterwards.
    Where its budget has no hours left, nothing is asked until it has; a person's word needs none.
    What is refused is looked at again each time: a refusal may no longer hold.
    """
    again, moves = again or Again(), list(moves)
    open_moves = noted.note(session, row, moves, now, event_id=again.event_id)
    if again.swept:
        open_moves = _still_so(session, open_moves, {move.key for move in moves})
    live = noted.live_retest(session, cast(int, row.id))
    if live is not None and live.state not in HELD:
        _join(session, live, open_moves)
    kinds = {move.kind for move in open_moves} - negatives.HINTS
    if not kinds or (live is not None and _goes_on(session, row, live, kinds)):
        return []
    engine = session.get_one(EngineRow, row.engine_id)
    then = grounds.read(row)
    revision = commit_for(session, engine, again.revision, then, kinds, now)
    why = refusal(engine, by_hand=again.by_hand)
    if revision is None:
        why = why or f"no revision of {engine.name} is known"
    bound = live is None and not again.by_hand
    if bound and kinds <= negatives.AT_MOST_DAILY and noted.asked_lately(session, row, now):
        why = why or noted.ONCE_A_DAY
    if why or revision is None:
        return _refuse(session, open_moves, why)
    drafter = again.drafter or _drafter_of_moves(session, row)
    answered = [
        move
        for move in open_moves
        if move.kind != DRAFTER or (drafter and move.key == f"{DRAFTER}:{drafter.sha256}")
    ]
    reason = "; ".join(dict.fromkeys(move.says for move in answered))
    if live is not None:
        reason = f"{live.reason}; {reason}"
    asked = _requests(session, row, engine, revision, drafter, reason)
    event = {"event_id": again.event_id} if again.event_id else {}
    by_hand = again.by_hand or (live is not None and live.lane == Lane.ON_DEMAND)
    signed = [
        replace(
            request,
            lane=Lane.ON_DEMAND if by_hand else Lane.RETEST,
            source=planner.BY_HAND if by_hand else f"engine:{engine.name}",
            cause={"negative_id": row.id, **event},
        )
        for request in asked
    ]
    waits = "" if by_hand else word_missing(session, signed, now)
    if waits:
        return _refuse(session, answered, waits)
    if kinds == {DRAFTER} and work.was_tried(session, signed[-1].identity):
        return _refuse(session, answered, noted.TRIED)
    if bound and not histories.has_room(session, signed[-1], now, hours=again.budget_hours):
        return _refuse(session, answered, noted.NO_HOURS)
    stuck = noted.stuck_retest(session, cast(int, row.id))
    if stuck is not None:
        superseding.hand_on(session, stuck, now=now)
    jobs = _queue(session, signed, answered, now)
    if live is not None and live.identity == signed[-1].identity:
        live.reason = reason
        session.add(live)
    elif live is not None:
        superseding.hand_on(session, live, now=now, asked_for=signed[-1].identity)
    return jobs


def _still_so(
    session: Session, moves: Iterable[NegativeMoveRow], read: Set[str]
) -> list[NegativeMoveRow]:
    """The moves that stand: what a machine or a watch list took back is no reason any more."""
    found: list[NegativeMoveRow] = []
    for move in moves:
        if move.kind not in negatives.MACHINE or move.key in read:
            found.append(move)
        else:
            _refuse(session, [move], noted.MOVED_BACK)
    return found


def _refuse(session: Session, moves: Iterable[NegativeMoveRow], why: str) -> list[JobRow]:
    """Say why nothing is asked; no jobs."""
    for move in moves:
        move.refusal = why
        session.add(move)
    return []


def _goes_on(session: Session, row: NegativeRow, live: JobRow, kinds: Set[str]) -> bool:
    """Whether a retest is waited for: it runs, or it gives one drafter its turn before another."""
    answers = (m for m in noted.moves_of(session, [cast(int, row.id)]) if m.job_id == live.id)
    drafting = any(move.kind == DRAFTER for move in answers)
    return live.state in HELD or (drafting and kinds == {DRAFTER})


def _queue(
    session: Session,
    requests: Sequence[JobRequest],
    moves: Iterable[NegativeMoveRow],
    now: datetime,
) -> list[JobRow]:
    found = work.enqueue(session, requests, now)
    jobs = [job for job in found.values() if job is not None]
    last = found[requests[-1].identity]
    for move in moves:
        if last is None:
            move.refusal = noted.BUILT
        else:
            move.job_id, move.refusal = last.id, ""
        session.add(move)
    session.flush()
    return [job for job in jobs if job.created_at == now]


def _join(session: Session, job: JobRow, moves: Iterable[NegativeMoveRow]) -> None:
    """What alone makes no retest is told with the one that waits."""
    for move in moves:
        if move.kind in negatives.HINTS:
            move.job_id = job.id
            job.reason = f"{job.reason}; {move.says}"
            session.add(move)
    session.add(job)
    session.flush()


def _requests(
    session: Session,
    row: NegativeRow,
    engine: EngineRow,
    revision: RevisionRow,
    drafter: ModelFileRow | None,
    reason: str,
) -> tuple[JobRequest, ...]:
    """The same question with what is there now."""
    value = worlds.known_revision(engine, revision).value
    target = target_for(engine, row.rig)
    number = cast(int, revision.id)
    if row.kind == Kind.BUILD:
        return (planner.build_request(value, number, target, lane=Lane.RETEST, reason=reason),)
    files = files_of(session, row)
    stack = session.exec(select(StackRow).where(StackRow.name == row.stack)).first()
    intent = dict(row.asked.get("intent") or {})
    if drafter is not None:
        files["drafter"] = drafter
        intent["speculation"] = speculation_of(worlds.known_file(drafter).shape)
    known = SHIPPED | (scenarios.of_stack(stack) if stack else {})
    scenario = _scenario(row, stack, known)
    found = chain(
        value,
        number,
        target,
        Files(
            _weights(files["target"]),
            _weights(files["drafter"]) if "drafter" in files else None,
            _weights(files["projector"]) if "projector" in files else None,
        ),
        BenchWish(
            rig=row.rig,
            scenario=scenario,
            stack=row.stack,
            context_tokens=row.context_tokens,
            runs=row.asked.get("runs"),
            boots=row.asked.get("boots"),
            intent=intent,
            flags=tuple(stack.flags) if stack else tuple(row.asked.get("flags") or ()),
            env=dict(stack.env) if stack else dict(row.asked.get("env") or {}),
        ),
        lane=Lane.RETEST,
        reason=reason,
    )
    return found.requests


def _drafter_of_moves(session: Session, row: NegativeRow) -> ModelFileRow | None:
    """The drafter that appeared last, first of those that nobody has tried yet."""
    moves = [m for m in noted.moves_of(session, [cast(int, row.id)]) if m.kind == DRAFTER]
    waiting = [move for move in moves if move.job_id is None] or moves[-1:]
    return catalog.model_with(session, waiting[0].key.partition(":")[2]) if waiting else None


def _scenario(row: NegativeRow, stack: StackRow | None, known: Mapping[str, Scenario]) -> Scenario:
    """The negative's own, else the first of its stack; a job measures no whole ladder."""
    names = (row.scenario, *(stack.scenarios if stack else ()))
    found = (rung_of(name, known) for name in names)
    return next((each for each in found if each and not each.depths), SCENARIOS[DEFAULT_SCENARIO])


def _weights(row: ModelFileRow) -> Weights:
    return Weights(cast(int, row.id), row.name, row.sha256)
