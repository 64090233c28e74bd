"""When a waiting job may start and end: what runs, what stands before it, what it needs."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from datetime import datetime, timedelta

from sqlalchemy import text
from sqlmodel import Session, col, select

from jobs.estimates import UNKNOWN, Expectation, expectation, remaining_seconds, under_way
from jobs.model import State
from jobs.store import line, pauses
from jobs.store.needs import open_needs
from jobs.tables import HELD, JobRow, WorkerRow

SILENT = timedelta(minutes=2)
"""A worker that said nothing for so long is not counted on."""

DEEPEST = 4
"""How far needs of needs are followed."""


@dataclass(frozen=True)
class Expected:
    """A live job's place in its line, None where it has none, and when it may start and end."""

    job_id: int
    position: int | None
    when: Expectation


class Expectations:
    """What is expected of the queues at one moment; read once, then asked for many jobs."""

    def __init__(self, session: Session, now: datetime) -> None:
        self._session = session
        self._now = now
        self._pauses = pauses.pauses(session, now)
        heard = select(WorkerRow.queue).where(
            col(WorkerRow.draining).is_(False), col(WorkerRow.beat_at) > now - SILENT
        )
        self._workers = Counter(session.exec(heard))
        self._left: dict[str, list[float | None]] = defaultdict(list)
        for row in session.exec(select(JobRow).where(text(HELD))):
            self._left[row.queue].append(self._remaining(row))

    def _remaining(self, row: JobRow) -> float | None:
        ran = (self._now - row.started_at).total_seconds() if row.started_at else 0.0
        return remaining_seconds(row.estimate_seconds, max(0.0, ran))

    def _first_free(self, queue: str) -> float | None:
        """Seconds until a worker of this queue has nothing to do; None where that is not known."""
        if not self._workers[queue]:
            return None
        left = self._left[queue]
        if len(left) < self._workers[queue]:
            return 0.0
        known = [each for each in left if each is not None]
        return min(known) if len(known) == len(left) else None

    def _least_wait(self, row: JobRow) -> float | None:
        """Seconds that this job waits in any case; None where nobody knows the end of a pause."""
        paused = self._pauses.get(row.queue)
        if paused is None:
            return (row.due_at - self._now).total_seconds()
        if paused.until is None:
            return None
        return (max(paused.until, row.due_at) - self._now).total_seconds()

    def in_order(self, rows: Iterable[JobRow]) -> Iterator[Expected]:
        """What is expected of rows in serving order, the heads of their queues among them."""
        places: Counter[str] = Counter()
        before: dict[str, float | None] = defaultdict(float)
        for row in rows:
            if not line.stands(row):
                yield Expected(row.id or 0, None, self._of(row))
                continue
            places[row.queue] += 1
            ahead, own = before[row.queue], row.estimate_seconds
            yield Expected(row.id or 0, places[row.queue], self._of(row, ahead_seconds=ahead))
            before[row.queue] = None if ahead is None or own is None else ahead + own

    def alone(self, row: JobRow, *, depth: int = 0) -> Expected:
        """The same for one job, its place in the line looked up."""
        if not line.stands(row):
            return Expected(row.id or 0, None, self._of(row, depth=depth))
        ahead = line.ahead_of(self._session, row)
        when = self._of(row, ahead_seconds=ahead.seconds, depth=depth)
        return Expected(row.id or 0, ahead.jobs + 1, when)

    def _of(
        self, row: JobRow, *, ahead_seconds: float | None = None, depth: int = 0
    ) -> Expectation:
        """When this job may start and end; `ahead_seconds` is what stands before it in line."""
        if row.state in (State.LEASED, State.RUNNING):
            return under_way(self._remaining(row))
        least = self._least_wait(row)
        free = self._first_free(row.queue)
        if least is None or free is None:
            return UNKNOWN
        if row.state == State.BLOCKED:
            wait = self._needs_end(row, depth)
        elif row.state != State.QUEUED:
            return UNKNOWN
        elif row.put_off:
            wait = free
        else:
            wait = None if ahead_seconds is None else free + ahead_seconds / self._crew(row.queue)
        return expectation(
            wait_seconds=wait, own_seconds=row.estimate_seconds, least_wait_seconds=least
        )

    def _crew(self, queue: str) -> int:
        return max(1, self._workers[queue])

    def _needs_end(self, row: JobRow, depth: int) -> float | None:
        """Seconds until the last of what this job needs has ended; None where that is not known."""
        holding = open_needs(self._session, row.id or 0)
        if not holding or depth >= DEEPEST:
            return None
        ends = [self.alone(need, depth=depth + 1).when.ends_in for need in holding]
        known = [end.total_seconds() for end in ends if end is not None]
        return max(known) if len(known) == len(ends) else None
