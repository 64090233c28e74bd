"""Results that were measured in turns: which belongs to which; the caller commits."""

from __future__ import annotations

from dataclasses import dataclass

from sqlmodel import Session, col, select

from jobs import planner
from jobs.arm_tables import ArmRow
from jobs.payloads import BenchPayload
from jobs.tables import ResultRow

CANDIDATE, BASELINE = "A", "B"


@dataclass(frozen=True)
class Arm:
    """One side of a sitting, and what both sides were asked."""

    turns: str
    arm: str
    question: str


def arm_of(turns: str, arm: str, payload: BenchPayload) -> Arm:
    """The arm of a bench; what is asked is all of its payload but whose build it is."""
    asked = payload.model_dump(
        mode="json", include={"scenario", "context_tokens", "intent", "flags", "env"}
    )
    return Arm(turns, arm, planner.digest("arm", asked))


def add(session: Session, result_id: int, arm: Arm) -> None:
    """Store which arm a result is; of a file that grew meanwhile the newest result counts."""
    of_both = select(ArmRow).where(ArmRow.turns == arm.turns, ArmRow.question == arm.question)
    for old in session.exec(of_both.where(ArmRow.arm == arm.arm)):
        session.delete(old)
    session.flush()
    session.add(ArmRow(result_id=result_id, **vars(arm)))
    session.flush()


def beside(session: Session, arm: Arm) -> ResultRow | None:
    """The result of the other arm, where it is there."""
    query = (
        select(ResultRow)
        .join(ArmRow, col(ArmRow.result_id) == col(ResultRow.id))
        .where(ArmRow.turns == arm.turns, ArmRow.question == arm.question, ArmRow.arm != arm.arm)
    )
    return session.exec(query).first()


def of_result(session: Session, result_id: int) -> tuple[str, int | None] | None:
    """The arm a result is and the result of the other one; None where it was measured alone."""
    row = session.get(ArmRow, result_id)
    if row is None:
        return None
    other = beside(session, Arm(row.turns, row.arm, row.question))
    return row.arm, other.id if other else None
