"""Queries about workers, rigs and schedule slots; the caller commits."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import UTC, datetime, timedelta
from typing import Any

from sqlalchemy.exc import IntegrityError
from sqlmodel import Session, col, select

from jobs.store.catalog import ensure_rig
from jobs.tables import RigRow, SlotRow, WorkerRow

HEARD_EVERY = timedelta(seconds=30)
SILENT_AFTER = timedelta(minutes=10)
"""Far more than two clocks are apart: a worker that said nothing for so long has died."""

CANARY_AFTER = timedelta(minutes=5)
"""An idle worker hears a doorbell at least so often; two that it missed are an alarm."""


def greet(session: Session, worker: WorkerRow) -> None:
    """A worker says that it is there, anew after each start."""
    session.merge(worker)


def worker_beat(session: Session, name: str, now: datetime) -> None:
    """A worker says that it still is."""
    row = session.get(WorkerRow, name)
    if row is not None:
        row.beat_at = now
        session.add(row)


def drain(session: Session, name: str, *, draining: bool = True) -> None:
    """The worker takes no new job and gives its running one back; or takes jobs again."""
    row = session.get(WorkerRow, name)
    if row is not None:
        row.draining = draining
        session.add(row)


def say_sandbox(session: Session, name: str, sandbox: str) -> None:
    """Which cage this worker has proven; empty for none."""
    row = session.get(WorkerRow, name)
    if row is not None:
        row.sandbox = sandbox
        session.add(row)


def say_trouble(session: Session, name: str, trouble: str, advice: str = "") -> bool:
    """What keeps this worker from a bench, empty for nothing; whether that is news."""
    row = session.get(WorkerRow, name)
    if row is None or row.trouble == trouble:
        return False
    row.trouble, row.advice = trouble, advice
    session.add(row)
    return True


def has_heard(session: Session, name: str, now: datetime) -> None:
    """A worker says that its doorbell reached it; written at most once in `HEARD_EVERY`."""
    row = session.get(WorkerRow, name)
    if row is not None and (row.heard_at is None or now - row.heard_at >= HEARD_EVERY):
        row.heard_at = now
        session.add(row)


def is_draining(session: Session, name: str) -> bool:
    """Whether this worker was asked to take no more."""
    row = session.get(WorkerRow, name)
    return row is not None and row.draining


def farewell(session: Session, name: str) -> None:
    """The worker has ended."""
    row = session.get(WorkerRow, name)
    if row is not None:
        session.delete(row)


def workers(session: Session) -> Sequence[WorkerRow]:
    """All workers that have greeted and not said farewell."""
    return session.exec(select(WorkerRow).order_by(col(WorkerRow.queue))).all()


def cages(session: Session, now: datetime) -> dict[str, tuple[str, ...]]:
    """The cages that workers of each queue have proven, those of silent workers left out."""
    found: dict[str, tuple[str, ...]] = {}
    for row in workers(session):
        if row.sandbox and row.beat_at > now - SILENT_AFTER:
            found[row.queue] = (*found.get(row.queue, ()), row.sandbox)
    return found


def describe_rig(
    session: Session, name: str, fingerprint: str, facts: Mapping[str, Any], now: datetime
) -> RigRow:
    """Store what the machine says of itself."""
    row, _ = ensure_rig(session, name, now=now)
    row.fingerprint, row.facts = fingerprint, dict(facts)
    session.add(row)
    session.flush()
    return row


def slot_of(now: datetime, *, minutes: float) -> datetime:
    """The start of the slot that `now` lies in; slots are counted from the epoch, in UTC."""
    length = timedelta(minutes=minutes).total_seconds()
    return datetime.fromtimestamp(now.timestamp() // length * length, UTC)


def take_slot(session: Session, schedule: str, slot: datetime, now: datetime) -> bool:
    """Whether this slot was still free; of many that ask, one is told yes.

    Slots that were missed are not made up for: the newest stands for them all.
    """
    try:
        with session.begin_nested():
            session.add(SlotRow(schedule=schedule, slot=slot, taken_at=now))
    except IntegrityError:
        return False
    return True


def slot_outcome(session: Session, schedule: str, slot: datetime) -> dict[str, Any] | None:
    """What became of a slot; None where nobody took it."""
    row = session.get(SlotRow, (schedule, slot))
    return None if row is None else dict(row.outcome)


def close_slot(session: Session, schedule: str, slot: datetime, outcome: Mapping[str, Any]) -> None:
    """Write down what became of a slot."""
    row = session.get(SlotRow, (schedule, slot))
    if row is not None:
        row.outcome = dict(outcome)
        session.add(row)
