"""What moved under negatives, and the jobs that ask again because of it; decides on none."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime
from typing import cast

from sqlmodel import Session, col, select

from jobs import negatives
from jobs.dialect import wire
from jobs.model import State
from jobs.negative_tables import NegativeMoveRow, NegativeRow
from jobs.negatives import Move
from jobs.store.needs import open_needs
from jobs.store.work import LIVE
from jobs.tables import JobRow

LONGEST_WHY = 1000
NO_HOURS = "its budget has no hours left today; it is tried when there are some"
ONCE_A_DAY = "it was tried less than a day ago; it is tried again when the day is over"
MOVED_BACK = "it has moved back"
TRIED = "it was asked with that already"
BUILT = "it is built already"
CARRIED = "it came while it was tried"
FINAL = (TRIED, BUILT, CARRIED)
"""Why a move is settled without a retest; every other reason is looked at again."""


def moves_of(session: Session, numbers: Iterable[int]) -> list[NegativeMoveRow]:
    """What moved under these negatives, oldest first."""
    query = select(NegativeMoveRow).where(col(NegativeMoveRow.negative_id).in_(sorted(numbers)))
    return list(session.exec(query.order_by(col(NegativeMoveRow.id))))


def note(
    session: Session,
    row: NegativeRow,
    moves: Iterable[Move],
    now: datetime,
    *,
    event_id: int | None = None,
) -> list[NegativeMoveRow]:
    """Write down what moved, each key once; all moves that wait for an answer."""
    known = {move.key: move for move in moves_of(session, [cast(int, row.id)])}
    for move in moves:
        if move.key not in known:
            known[move.key] = NegativeMoveRow(
                negative_id=cast(int, row.id),
                key=move.key,
                kind=move.kind,
                says=wire.plain(move.says)[:LONGEST_WHY],
                moved_at=now,
                event_id=event_id,
            )
            session.add(known[move.key])
    session.flush()
    return [m for m in known.values() if m.job_id is None and not m.refusal.startswith(FINAL)]


def live_retest(session: Session, number: int) -> JobRow | None:
    """The job that asks again and will end by itself."""
    job = _last_retest(session, number)
    return None if job is None or _is_stuck(session, job) else job


def stuck_retest(session: Session, number: int) -> JobRow | None:
    """The job that asks again and waits for one that ended badly: it holds nothing."""
    job = _last_retest(session, number)
    return job if job is not None and _is_stuck(session, job) else None


def _last_retest(session: Session, number: int) -> JobRow | None:
    query = (
        select(JobRow)
        .join(NegativeMoveRow, col(NegativeMoveRow.job_id) == col(JobRow.id))
        .where(NegativeMoveRow.negative_id == number, col(JobRow.state).in_(LIVE))
    )
    return session.exec(query.order_by(col(JobRow.id).desc()).limit(1)).first()


def _is_stuck(session: Session, job: JobRow) -> bool:
    if job.state != State.BLOCKED.value:
        return False
    return any(need.state not in LIVE for need in open_needs(session, cast(int, job.id)))


def asked_lately(session: Session, row: NegativeRow, now: datetime) -> bool:
    """Whether the question was tried again within `BETWEEN` for what may ask only so often."""
    ended = [State.SUPERSEDED.value, State.CANCELLED.value, State.EXPIRED.value]
    query = (
        select(JobRow.id)
        .join(NegativeMoveRow, col(NegativeMoveRow.job_id) == col(JobRow.id))
        .join(NegativeRow, col(NegativeRow.id) == col(NegativeMoveRow.negative_id))
        .where(
            NegativeRow.question == row.question,
            col(NegativeMoveRow.kind).in_(negatives.AT_MOST_DAILY),
            col(JobRow.created_at) > now - negatives.BETWEEN,
            col(JobRow.state).not_in(ended),
        )
    )
    return session.exec(query.limit(1)).first() is not None
