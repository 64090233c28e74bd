"""What doubtful results said of negatives is taken back, and holds again with them; judges none."""

from __future__ import annotations

from datetime import datetime
from typing import cast

from sqlmodel import Session, col, select

from jobs import negatives
from jobs.model import Blame
from jobs.negative_tables import NegativeRow
from jobs.negatives import NegativeState
from jobs.store import negatives as store
from jobs.store import noted, work
from jobs.store.negatives import FAILED, MEASURED, STANDING
from jobs.tables import JobRow, ResultRow

SINCE_ANSWERED = "it is believed again, and was answered since"


def settle(session: Session, now: datetime) -> int:
    """Let negatives stand as what is believed now says; how many stand otherwise than before."""
    if session.exec(select(NegativeRow.id).limit(1)).first() is None:
        return 0
    work.take_turn(session)
    count = _overturned_by_doubt(session, now) + _believed_success(session, now)
    while (taken := _born_of_doubt(session, now)) > 0:
        count += taken
    return count + _believed_failure(session, now)


def _overturned_by_doubt(session: Session, now: datetime) -> int:
    """What a doubtful success overturned stands again, with the reason."""
    query = (
        select(NegativeRow, ResultRow.doubt)
        .join(ResultRow, col(ResultRow.job_id) == col(NegativeRow.overturned_by))
        .where(NegativeRow.state == NegativeState.OVERTURNED.value, ResultRow.doubt != "")
    )
    found = session.exec(query.order_by(col(NegativeRow.id).desc())).all()
    followed = {row.follows_id for row, _ in found}
    for row, why in found:
        if row.id in followed:
            store.end(row, NegativeState.FOLLOWED, now, store.A_NEWER)
        elif (other := _standing(session, row)) is not None:
            store.end(row, NegativeState.FOLLOWED, now, f"negative {other.id} stands by now")
        else:
            _stand(row)
            move = negatives.success_doubted(cast(int, row.overturned_by), why)
            noted.note(session, row, [move], now)
        session.add(row)
        session.flush()
    return len(found)


def _believed_success(session: Session, now: datetime) -> int:
    """A success that is believed again overturns again what still stands against it."""
    query = (
        select(NegativeRow)
        .join(ResultRow, col(ResultRow.job_id) == col(NegativeRow.overturned_by))
        .where(NegativeRow.state == STANDING, ResultRow.doubt == "")
    )
    heads = session.exec(query.order_by(col(NegativeRow.id))).all()
    for head in heads:
        for row in store.before(session, head):
            by = f"job {head.overturned_by} succeeded, and is believed again"
            row.overturned_by = head.overturned_by
            store.end(row, NegativeState.OVERTURNED, now, by)
            session.add(row)
    session.flush()
    return len(heads)


def _born_of_doubt(session: Session, now: datetime) -> int:
    """What a doubtful result or failure says stands no longer; what it followed stands again."""
    measured = (
        select(NegativeRow, ResultRow.doubt)
        .join(ResultRow, col(ResultRow.job_id) == col(NegativeRow.job_id))
        .where(NegativeRow.state == STANDING, ResultRow.doubt != "")
    )
    failed = (
        select(NegativeRow, JobRow.message)
        .join(JobRow, col(JobRow.id) == col(NegativeRow.job_id))
        .where(
            NegativeRow.state == STANDING,
            NegativeRow.outcome == FAILED,
            JobRow.blame == Blame.ENVIRONMENT.value,
        )
    )
    found = {row.id: (row, why) for row, why in (*session.exec(measured), *session.exec(failed))}
    for row, why in found.values():
        store.end(row, NegativeState.DOUBTED, now, why[: noted.LONGEST_WHY])
        session.add(row)
        session.flush()
        before = session.get(NegativeRow, row.follows_id or 0)
        if before is not None and before.state == NegativeState.FOLLOWED:
            _stand(before)
            session.add(before)
            session.flush()
    return len(found)


def _believed_failure(session: Session, now: datetime) -> int:
    """What is believed again stands again, unless the question was answered since."""
    query = (
        select(NegativeRow)
        .join(ResultRow, col(ResultRow.job_id) == col(NegativeRow.job_id))
        .where(
            NegativeRow.state == NegativeState.DOUBTED.value,
            NegativeRow.outcome == MEASURED,
            ResultRow.doubt == "",
        )
    )
    found = session.exec(query.order_by(col(NegativeRow.id))).all()
    for row in found:
        other = _standing(session, row)
        before = session.get(NegativeRow, row.follows_id or 0)
        if other is not None and before is not None and other.id == before.id:
            store.end(before, NegativeState.FOLLOWED, now, store.A_NEWER)
            session.add(before)
            session.flush()
            _stand(row)
        elif other is None and (before is None or before.state == NegativeState.DOUBTED):
            _stand(row)
        else:
            store.end(row, NegativeState.FOLLOWED, now, SINCE_ANSWERED)
        session.add(row)
        session.flush()
    return len(found)


def _standing(session: Session, row: NegativeRow) -> NegativeRow | None:
    query = select(NegativeRow).where(
        NegativeRow.question == row.question, NegativeRow.state == STANDING
    )
    return session.exec(query).first()


def _stand(row: NegativeRow) -> None:
    row.state, row.ended_at, row.ended_by = STANDING, None, ""
