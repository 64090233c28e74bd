"""Asks again what stands as impossible once something it depended on moved; runs nothing."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence, Set
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any, cast

from sqlmodel import Session, select

from jobs import lifecycle, negatives, planner
from jobs.engines.registry import FAMILIES
from jobs.errors import UsageError
from jobs.model import Kind, Lane, State, Trust
from jobs.negative_rows import NegativeMoveRow, NegativeRow
from jobs.negatives import DRAFTER, Grounds, Move
from jobs.pairing import Answer, pair
from jobs.planner import JobRequest, Weights
from jobs.planning.chains import BenchWish, Files, chain
from jobs.planning.pairs import DRAFTERS, speculation_of
from jobs.scenarios import DEFAULT_SCENARIO, SCENARIOS
from jobs.store import catalog, forks, grounds, published, work, worlds
from jobs.store import negatives as store
from jobs.store.grounds import files_of, newest_revision
from jobs.store.needs import dependents_of, needs_of
from jobs.store.targets import target_for
from jobs.store.work import HELD
from jobs.tables import EngineRow, EventRow, JobRow, ModelFileRow, RevisionRow, StackRow

REVISIONS = frozenset(
    {
        "release",
        "fork_pushed",
        "branch_created",
        "upstream_synced",
        "feature_absorbed",
        "fork_capability_changed",
    }
)
DRAFTER_KINDS = frozenset({"drafter_published", "mtp_variant_published"})
ISSUES = frozenset({"issue_closed", "issue_moved", "pr_merged"})


@dataclass(frozen=True)
class Again:
    """What a retest asks with, where it is not what failed; `by_hand` is a person's approval."""

    revision: RevisionRow | None = None
    drafter: ModelFileRow | None = None
    event_id: int | None = None
    by_hand: bool = False


def moved_by(session: Session, event: EventRow, now: datetime) -> list[JobRow]:
    """Retests of the negatives that an event tells news of, one for each; those that are new."""
    jobs: list[JobRow] = []
    for row, move, again in _concerned(session, event, now):
        jobs += requeue(session, row, [move], now, again)
    return jobs


def look(session: Session, now: datetime) -> list[JobRow]:
    """Retests of what expired, or whose rig, flags or engine moved without an event."""
    rows = store.standing(session)
    if not rows:
        return []
    work.take_turn(session)
    seen = grounds.scenery(session, rows)
    jobs: list[JobRow] = []
    for row in rows:
        then = grounds.read(row)
        today = seen.now(row, then)
        moves = list(negatives.changed(then, today))
        if then.commit and today.place > then.place:
            moves.append(negatives.advanced(seen.engines[row.engine_id].name, then, today))
        if ended := negatives.expired(row.expires_at, row.days, now):
            moves.append(ended)
        jobs += requeue(session, row, moves, now)
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
    live = store.live_retest(session, number)
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
    """
    again = again or Again()
    open_moves = store.note(session, row, moves, now, event_id=again.event_id)
    live = store.live_retest(session, cast(int, row.id))
    if live is not None and live.state not in HELD:
        _join(session, live, open_moves)
    kinds = {move.kind for move in open_moves} - {negatives.HINT}
    if not kinds or (live is not None and _goes_on(session, row, live, kinds)):
        return []
    engine = session.get_one(EngineRow, row.engine_id)
    revision = again.revision or newest_revision(session, row.engine_id)
    why = refusal(engine, by_hand=again.by_hand)
    if revision is None:
        why = why or f"no revision of {engine.name} is known"
    if why or revision is None:
        for move in open_moves:
            move.refusal = why
            session.add(move)
        return []
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
    signed = [
        replace(
            request,
            lane=Lane.ON_DEMAND if again.by_hand else Lane.RETEST,
            source=planner.BY_HAND if again.by_hand else f"engine:{engine.name}",
            cause={"negative_id": row.id, **event},
        )
        for request in asked
    ]
    if kinds == {DRAFTER} and work.was_tried(session, signed[-1].identity):
        for move in answered:
            move.refusal = "it was asked with that already"
            session.add(move)
        return []
    jobs = _queue(session, signed, answered, now)
    if live is not None and live.identity == signed[-1].identity:
        live.reason = reason
        session.add(live)
    elif live is not None:
        _give_way(session, live, now)
    return jobs


def _goes_on(session: Session, row: NegativeRow, live: JobRow, kinds: Set[str]) -> bool:
    """Whether a retest is waited for: it runs, or it gives one drafter its turn before another."""
    answers = (m for m in store.moves_of(session, [cast(int, row.id)]) if m.job_id == live.id)
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
            move.refusal = "it is built already"
        else:
            move.job_id = last.id
        session.add(move)
    session.flush()
    return [job for job in jobs if job.created_at == now]


def _join(session: Session, job: JobRow, moves: Iterable[NegativeMoveRow]) -> None:
    """What alone makes no retest is told with the one that waits."""
    for move in moves:
        if move.kind == negatives.HINT:
            move.job_id = job.id
            job.reason = f"{job.reason}; {move.says}"
            session.add(move)
    session.add(job)
    session.flush()


def _give_way(session: Session, job: JobRow, now: datetime) -> None:
    """End a waiting retest, and what waits for nothing else."""
    _supersede(session, job, now)
    for need in needs_of(session, cast(int, job.id)):
        waits = need.state in (State.QUEUED, State.BLOCKED) and need.lane != Lane.ON_DEMAND
        needed = any(d.state in work.LIVE for d in dependents_of(session, cast(int, need.id)))
        if waits and not needed:
            _supersede(session, need, now)


def _supersede(session: Session, job: JobRow, now: datetime) -> None:
    lifecycle.check_move(State(job.state), State.SUPERSEDED)
    job.state, job.finished_at, job.blocked_by = State.SUPERSEDED.value, now, None
    job.message = "more has moved: the retest asks with that"
    session.add(job)
    session.flush()


def refusal(engine: EngineRow, *, by_hand: bool) -> str:
    """Why nothing of an engine may be queued by itself, or by a person."""
    if engine.family not in FAMILIES:
        return f"the family {engine.family} cannot be built yet"
    if engine.trust == Trust.NEVER:
        return f"{engine.name} is never built: its trust is 'never'"
    if by_hand:
        return ""
    if engine.retired:
        return f"{engine.name} is no longer watched"
    if engine.trust == Trust.APPROVE:
        return f"a person approves each commit of {engine.name}: forkscout negatives retry"
    return ""


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
    scenario = SCENARIOS.get(row.scenario) or _first_scenario(stack)
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
    moves = [m for m in store.moves_of(session, [cast(int, row.id)]) if m.kind == DRAFTER]
    waiting = [move for move in moves if move.job_id is None] or moves[-1:]
    return catalog.model_with(session, waiting[0].key.partition(":")[2]) if waiting else None


def _first_scenario(stack: StackRow | None) -> Any:
    known = [SCENARIOS[name] for name in (stack.scenarios if stack else ()) if name in SCENARIOS]
    return known[0] if known else SCENARIOS[DEFAULT_SCENARIO]


def _weights(row: ModelFileRow) -> Weights:
    return Weights(cast(int, row.id), row.name, row.sha256)


def _concerned(
    session: Session, event: EventRow, now: datetime
) -> Iterator[tuple[NegativeRow, Move, Again]]:
    """The standing negatives that an event is about, and what it moves under each."""
    if event.kind in REVISIONS:
        yield from _by_revision(session, event)
    elif event.kind in DRAFTER_KINDS:
        yield from _by_drafter(session, event, now)
    elif event.kind in ISSUES:
        yield from _by_issue(session, event)


def _by_revision(session: Session, event: EventRow) -> Iterator[tuple[NegativeRow, Move, Again]]:
    revision = _revision(session, event)
    if revision is None:
        return
    engine = session.get_one(EngineRow, revision.engine_id)
    today = Grounds(**grounds.at(revision))
    for row in store.standing(session, engine_ids=[revision.engine_id]):
        then = grounds.read(row)
        if not then.commit or today.place > then.place:
            move = negatives.advanced(engine.name, then, today, commits=_commits(event))
            yield row, move, Again(revision=revision, event_id=event.id)


def _revision(session: Session, event: EventRow) -> RevisionRow | None:
    """What the event is about: its own revision, or the head at which it was noticed."""
    if event.revision_id:
        return session.get(RevisionRow, event.revision_id)
    facts: Mapping[str, Any] = event.payload.get("facts") or event.payload
    query = select(RevisionRow).where(
        RevisionRow.engine_id == event.engine_id, RevisionRow.commit == str(facts.get("after"))
    )
    return session.exec(query).first()


def _commits(event: EventRow) -> int | None:
    """How many commits came, as far as the event counts them."""
    facts: Mapping[str, Any] = event.payload.get("facts") or event.payload
    for name in ("new_patches", "absorbed"):
        if isinstance(facts.get(name), int) and facts[name] > 0:
            return int(facts[name])
    return None


def _by_drafter(
    session: Session, event: EventRow, now: datetime
) -> Iterator[tuple[NegativeRow, Move, Again]]:
    """A drafter helps where a drafter is asked for and may go with the target."""
    rows = [row for row in store.standing(session) if row.drafter_file_id is not None]
    if not rows:
        return
    drafter, _ = published.file_of(session, event, now)
    if drafter is None or worlds.known_file(drafter).role not in DRAFTERS:
        return
    for row in rows:
        target = files_of(session, row)["target"]
        if row.drafter_file_id == drafter.id or not _may_pair(session, row, target, drafter):
            continue
        short = drafter.name.rpartition("/")[2].rpartition(":")[2]
        move = negatives.drafter_appeared(short, drafter.sha256)
        yield row, move, Again(drafter=drafter, event_id=event.id)


def _may_pair(
    session: Session, row: NegativeRow, target: ModelFileRow, drafter: ModelFileRow
) -> bool:
    """Whether nothing speaks against the pair; without headers, whether they are of one model."""
    shape, other = worlds.known_file(target).shape, worlds.known_file(drafter).shape
    if shape is None or other is None:
        return target.model_class.lower() == drafter.model_class.lower()
    engine = session.get_one(EngineRow, row.engine_id)
    revision = newest_revision(session, row.engine_id)
    if revision is None:
        return True
    state = worlds.known_revision(engine, revision).state
    return pair(shape, state=state, drafter=other).answer is not Answer.INCOMPATIBLE


def _by_issue(session: Session, event: EventRow) -> Iterator[tuple[NegativeRow, Move, Again]]:
    """An issue that somebody linked moved; a note may name the stacks it is about."""
    name, number = str(event.payload.get("full_name")), event.payload.get("number")
    linked = forks.linked_issue(session, name, number) if isinstance(number, int) else None
    if linked is None:
        return
    words = set(linked.note.replace(",", " ").split())
    rows = [
        row
        for row in store.standing(session)
        if row.engine_id == event.engine_id or f"{name}#{number}" in grounds.read(row).issues
    ]
    named = {row.stack for row in rows} & words
    for row in rows:
        if not named or row.stack in named:
            number = cast(int, event.id)
            answered = event.kind == "issue_moved"
            told = negatives.issue_answered if answered else negatives.issue_moved
            yield row, told(event.title, number), Again(event_id=number)
