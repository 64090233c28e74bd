"""Queries on negatives: which stand, how they follow each other, what ended them; none commits."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from typing import cast

from sqlmodel import Session, col, select

from jobs import negatives
from jobs.dialect import wire
from jobs.errors import UsageError
from jobs.negative_tables import NegativeRow
from jobs.negatives import Grounds, Move, NegativeState, Past, Question, span
from jobs.store import catalog, grounds
from jobs.store.grounds import Asked
from jobs.store.noted import CARRIED, LONGEST_WHY, note
from jobs.store.work import LARGEST_ID
from jobs.tables import EngineRow, JobRow

STANDING = NegativeState.STANDING.value
MEASURED, FAILED = "measured", "failed"
"""Outcomes of jobs: a result that tells of the stack, and none at all."""
A_NEWER = "a newer negative of the same question"
LONGEST_CHAIN = 1000
MOST_SHOWN = 500


@dataclass(frozen=True)
class Said:
    """What somebody or something found: the words of a negative.

    `source` is `hand` or the kind of job that said it, `outcome` how that ended.
    """

    outcome: str
    failure_class: str
    why: str
    source: str
    blame: str = ""
    job_id: int | None = None
    identity: str = ""
    days: float = negatives.DEFAULT_DAYS


def negative(session: Session, number: int) -> NegativeRow:
    """The negative with this number; raises `UsageError` where there is none."""
    row = session.get(NegativeRow, number) if 0 < number <= LARGEST_ID else None
    if row is None:
        raise UsageError(f"there is no negative {number}", advice="see `forkscout negatives --all`")
    return row


def listed(
    session: Session,
    *,
    states: Sequence[NegativeState] = (),
    engine_id: int | None = None,
    limit: int = MOST_SHOWN,
) -> list[NegativeRow]:
    """Negatives in these states: those that stand by the day they end, others newest first."""
    query = select(NegativeRow)
    if states:
        query = query.where(col(NegativeRow.state).in_([state.value for state in states]))
    if engine_id is not None:
        query = query.where(NegativeRow.engine_id == engine_id)
    rows = session.exec(query.order_by(col(NegativeRow.id).desc()).limit(limit)).all()
    standing_rows = sorted(
        (row for row in rows if row.state == STANDING), key=lambda row: row.expires_at
    )
    return [*standing_rows, *(row for row in rows if row.state != STANDING)]


def standing(session: Session, *, engine_ids: Iterable[int] | None = None) -> list[NegativeRow]:
    """All that stand, oldest first; those of some engines where asked."""
    query = select(NegativeRow).where(NegativeRow.state == STANDING)
    if engine_ids is not None:
        query = query.where(col(NegativeRow.engine_id).in_(sorted(engine_ids)))
    return list(session.exec(query.order_by(col(NegativeRow.id))))


def standing_on(session: Session, question: Question) -> NegativeRow | None:
    """The negative that stands for this question, or for the same in any scenario."""
    query = select(NegativeRow).where(
        NegativeRow.state == STANDING, col(NegativeRow.question).in_(question.keys)
    )
    rows = session.exec(query.order_by(col(NegativeRow.id).desc())).all()
    own = [row for row in rows if row.question == question.key]
    return next(iter((*own, *rows)), None)


def standing_identities(session: Session) -> frozenset[str]:
    """Identities of jobs that stand as not working: planning asks for none of them again."""
    query = select(NegativeRow.identity).where(
        NegativeRow.state == STANDING, NegativeRow.identity != ""
    )
    return frozenset(session.exec(query))


def standing_questions(session: Session) -> frozenset[str]:
    """Questions that stand, without what may move: only retests ask them."""
    query = select(NegativeRow.question).where(NegativeRow.state == STANDING)
    return frozenset(session.exec(query))


def bear(session: Session, asked: Asked, said: Said, now: datetime) -> NegativeRow:
    """A new negative; it follows the one that stood for its question, which stands no longer.

    A failed job that follows one which holds in any scenario holds in any, too; what a person says
    of a single scenario stands beside that.
    """
    question = asked.question
    previous = standing_on(session, question)
    if previous is not None and previous.question != question.key:
        if said.job_id is None:
            previous = None
        else:
            question = replace(question, scenario=negatives.ANY_SCENARIO)
    past = Past(previous.failure_class, previous.days) if previous else None
    days = negatives.days_for(past, said.failure_class, default=said.days)
    numbers = {role: row.id for role, row in asked.files.items()}
    row = NegativeRow(
        question=question.key,
        kind=question.kind.value,
        engine_id=cast(int, asked.engine.id),
        rig=question.rig,
        scenario=question.scenario,
        stack=asked.stack,
        context_tokens=question.context_tokens,
        target_file_id=numbers.get("target"),
        drafter_file_id=numbers.get("drafter"),
        projector_file_id=numbers.get("projector"),
        revision_id=asked.revision.id if asked.revision else None,
        asked=dict(asked.wish),
        grounds=grounds.stored(asked.grounds),
        outcome=said.outcome,
        failure_class=wire.plain(said.failure_class)[:80],
        blame=said.blame,
        why=wire.plain(said.why)[:LONGEST_WHY],
        source=said.source,
        identity=said.identity,
        job_id=said.job_id,
        days=days,
        created_at=now,
        expires_at=now + timedelta(days=days),
        follows_id=previous.id if previous else None,
    )
    if previous is not None:
        end(previous, NegativeState.FOLLOWED, now, A_NEWER)
        session.add(previous)
        session.flush()
    session.add(row)
    session.flush()
    if previous is not None:
        _carry(session, previous, row, now)
    return row


def _carry(session: Session, previous: NegativeRow, row: NegativeRow, now: datetime) -> None:
    """What moved while the retest ran moves the new negative; a sweep finds the rest itself."""
    for move in note(session, previous, (), now):
        if move.kind not in negatives.AT_MOST_DAILY or move.event_id is not None:
            note(session, row, [Move(move.key, move.kind, move.says)], now, event_id=move.event_id)
        move.refusal = f"{CARRIED}: see negative {row.id}"
        session.add(move)
    session.flush()


def overturn(session: Session, asked: Asked, job: JobRow, now: datetime) -> list[NegativeRow]:
    """Mark every negative of this question that the success refutes, and tell of it once.

    One that depends on a newer revision than the one that works is not refuted, and neither is one
    that was measured in more boots or runs.
    """
    query = select(NegativeRow).where(
        col(NegativeRow.question).in_(asked.question.keys),
        col(NegativeRow.state).in_([STANDING, NegativeState.FOLLOWED.value]),
    )
    heads = [
        row
        for row in session.exec(query.order_by(col(NegativeRow.id)))
        if negatives.tells_more(asked.grounds, grounds.read(row))
        and _is_enough(session, row, asked, job, now)
    ]
    ended = {cast(int, row.id): row for head in heads for row in before(session, head)}
    rows = [row for _, row in sorted(ended.items()) if row.state != NegativeState.OVERTURNED]
    if not any(row.state == STANDING for row in rows):
        return []
    for row in rows:
        end(row, NegativeState.OVERTURNED, now, f"job {job.id} succeeded")
        row.overturned_by = job.id
        session.add(row)
    session.flush()
    _tell(session, asked, rows, job, now)
    return rows


def _is_enough(
    session: Session, row: NegativeRow, asked: Asked, job: JobRow, now: datetime
) -> bool:
    """Whether a success weighs as much as what a negative was measured with; else it is said."""
    if row.outcome != MEASURED or negatives.measures_enough(row.asked, asked.wish):
        return True
    if row.state == STANDING:
        less = negatives.measured_less(cast(int, job.id), row.asked, asked.wish)
        note(session, row, [less], now)
    return False


def _tell(
    session: Session, asked: Asked, rows: Sequence[NegativeRow], job: JobRow, now: datetime
) -> None:
    stood = span(now - min(row.created_at for row in rows))
    newest = rows[-1]
    catalog.add_event(
        session,
        key=f"{negatives.OVERTURNED}:{newest.id}:{job.id}",
        kind=negatives.OVERTURNED,
        engine_id=asked.engine.id,
        title=f"{asked.engine.name}: {asked.label} works, impossible for {stood} "
        f"({wire.plain(newest.failure_class).replace('_', ' ')})",
        now=now,
        payload={
            "negatives": [row.id for row in rows],
            "job_id": job.id,
            "revision": asked.grounds.commit,
            "stood": stood,
            "says": job.message[:LONGEST_WHY],
        },
    )


def end(row: NegativeRow, state: NegativeState, now: datetime, by: str) -> None:
    """It stands no longer, for that reason."""
    row.state, row.ended_at, row.ended_by = state.value, now, by


def before(session: Session, row: NegativeRow) -> list[NegativeRow]:
    """This negative and those it follows, oldest first."""
    found = [row]
    while found[-1].follows_id is not None and len(found) < LONGEST_CHAIN:
        found.append(session.get_one(NegativeRow, found[-1].follows_id))
    return found[::-1]


def history(session: Session, row: NegativeRow) -> list[NegativeRow]:
    """The whole chain that a negative belongs to, oldest first."""
    found = before(session, row)
    while len(found) < LONGEST_CHAIN:
        query = select(NegativeRow).where(NegativeRow.follows_id == found[-1].id)
        following = session.exec(query.order_by(col(NegativeRow.id).desc()).limit(1)).first()
        if following is None:
            break
        found.append(following)
    return found


def forget(session: Session, number: int, now: datetime, *, by: str) -> NegativeRow:
    """A person takes a standing negative back; planning may ask again. `recall` undoes it."""
    row = negative(session, number)
    if row.state != STANDING:
        raise UsageError(
            f"negative {number} stands no longer ({row.state})",
            advice=f"see `forkscout negatives show {number}`",
        )
    end(row, NegativeState.FORGOTTEN, now, by)
    session.add(row)
    session.flush()
    return row


def recall(session: Session, number: int) -> NegativeRow:
    """Undo `forget`; the date stays what it was."""
    row = negative(session, number)
    if row.state != NegativeState.FORGOTTEN:
        raise UsageError(
            f"negative {number} was not forgotten ({row.state})",
            advice="see `forkscout negatives --all`",
        )
    query = select(NegativeRow).where(
        NegativeRow.state == STANDING, NegativeRow.question == row.question
    )
    other = session.exec(query).first()
    if other is not None:
        raise UsageError(
            f"negative {other.id} stands for the same question now",
            advice=f"forget that one first: `forkscout negatives forget {other.id}`",
        )
    row.state, row.ended_at, row.ended_by = STANDING, None, ""
    session.add(row)
    session.flush()
    return row


def failed_before(session: Session, row: NegativeRow) -> list[Grounds]:
    """What the earlier answers of this question depended on, until one of them was overturned."""
    query = select(NegativeRow).where(
        NegativeRow.question == row.question,
        NegativeRow.state == NegativeState.FOLLOWED.value,
    )
    newest = query.order_by(col(NegativeRow.id).desc()).limit(LONGEST_CHAIN)
    return [grounds.read(each) for each in session.exec(newest)]


def engine_names(session: Session, rows: Iterable[NegativeRow]) -> Mapping[int, str]:
    """Names of the engines that these negatives are about."""
    numbers = sorted({row.engine_id for row in rows})
    query = select(EngineRow).where(col(EngineRow.id).in_(numbers))
    return {cast(int, row.id): row.name for row in session.exec(query)}
