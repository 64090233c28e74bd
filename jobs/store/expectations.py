"""When a waiting job may start and end: what runs, what stands before it, what it needs."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta

from sqlalchemy import text
from sqlmodel import Session, col, select

from jobs.estimates import UNKNOWN, Expectation, expectation, remaining_seconds, under_way
from jobs.model import Lane, State
from jobs.store import line, pauses, rigs
from jobs.store.line import Ahead
from jobs.store.needs import open_needs_of
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
        self.now = now
        self._pauses = pauses.pauses(session, now)
        self._shut = rigs.quarantines(session)
        heard = select(WorkerRow).where(
            col(WorkerRow.draining).is_(False), col(WorkerRow.beat_at) > now - SILENT
        )
        workers = session.exec(heard).all()
        self._workers = Counter(worker.queue for worker in workers)
        self._machines: dict[str, set[str]] = defaultdict(set)
        for worker in workers:
            self._machines[worker.queue].add(_machine_of(worker.name))
        self._held = session.exec(select(JobRow).where(text(HELD)).order_by(col(JobRow.id))).all()
        self._left: dict[str, list[float | None]] = defaultdict(list)
        for row in self._held:
            self._left[row.queue].append(self._remaining(row))
        self._ahead: dict[int, Ahead] = {}
        self._needs: dict[int, list[JobRow]] = {}

    def _remaining(self, row: JobRow) -> float | None:
        ran = (self.now - row.started_at).total_seconds() if row.started_at else 0.0
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

    def on_the_machine(self, queue: str) -> Sequence[JobRow]:
        """What keeps each machine of this queue from it: a bench is alone on its machine.

        Nothing where one of its machines is free for it.
        """
        found = [self._in_the_way(queue, machine) for machine in self._machines[queue]]
        return () if not all(found) else [row for rows in found for row in rows]

    def _in_the_way(self, queue: str, machine: str) -> list[JobRow]:
        alone = queue.startswith(rigs.BENCH)
        return [
            row
            for row in self._held
            if row.queue != queue
            and _machine_of(row.leased_by or "") == machine
            and (alone or row.queue.startswith(rigs.BENCH))
        ]

    def _machine_free(self, queue: str) -> float | None:
        """Seconds until a machine of this queue may be used for it; None where nobody knows."""
        if not self.on_the_machine(queue):
            return 0.0
        ends = []
        for machine in self._machines[queue]:
            left = [self._remaining(row) for row in self._in_the_way(queue, machine)]
            known = [each for each in left if each is not None]
            ends += [max(known)] if len(known) == len(left) else []
        return min(ends) if ends else None

    def _least_wait(self, row: JobRow) -> float | None:
        """Seconds that this job waits in any case; None where nobody knows what ends the wait."""
        if self._quarantine(row):
            return None
        paused = self._pauses.get(row.queue)
        if paused is None:
            return (row.due_at - self.now).total_seconds()
        if paused.until is None:
            return None
        return (max(paused.until, row.due_at) - self.now).total_seconds()

    def in_order(self, rows: Iterable[JobRow]) -> Iterator[Expected]:
        """What is expected of rows in serving order, the heads of their queues among them."""
        rows = list(rows)
        self._look_up([], rows)
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

    def each(self, rows: Sequence[JobRow]) -> Iterator[Expected]:
        """What `alone` says, of many jobs for the price of one walk along each line."""
        self._look_up(rows, rows)
        for row in rows:
            yield self.alone(row)

    def _look_up(self, placed: Iterable[JobRow], rows: Iterable[JobRow]) -> None:
        """The places of these rows, and of all that the blocked ones among `rows` wait for."""
        standing = [row for row in placed if line.stands(row)]
        level = {row.id or 0: row for row in rows}
        for _ in range(DEEPEST):
            blocked = [number for number, row in level.items() if row.state == State.BLOCKED]
            found = open_needs_of(self._session, blocked) if blocked else {}
            self._needs |= found
            level = {need.id or 0: need for needs in found.values() for need in needs}
            standing += [row for row in level.values() if line.stands(row)]
        self._ahead |= line.ahead_of_each(self._session, standing)

    def alone(self, row: JobRow, *, depth: int = 0) -> Expected:
        """The same for one job, its place in the line looked up."""
        if not line.stands(row):
            return Expected(row.id or 0, None, self._of(row, depth=depth))
        ahead = self._ahead.get(row.id or 0) or line.ahead_of(self._session, row)
        when = self._of(row, ahead_seconds=ahead.seconds, depth=depth)
        return Expected(row.id or 0, ahead.jobs + 1, when)

    def _of(
        self, row: JobRow, *, ahead_seconds: float | None = None, depth: int = 0
    ) -> Expectation:
        """When this job may start and end; `ahead_seconds` is what stands before it in line."""
        if row.state in (State.LEASED, State.RUNNING):
            return under_way(self._remaining(row))
        found = self._waiting(row, ahead_seconds, depth)
        return replace(found, after=self._after(row))

    def _after(self, row: JobRow) -> str:
        """What has to happen before this job runs, where it is one thing with a name."""
        if self._quarantine(row):
            return f"after the release of {rigs.rig_of(row.queue)}"
        paused = self._pauses.get(row.queue)
        if paused is not None:
            return "" if paused.until else f"after `forkscout queue resume {row.queue}`"
        busy = self.on_the_machine(row.queue) if line.stands(row) else ()
        if not busy:
            return ""
        names = ", ".join(f"{each.kind.replace('_', ' ')} {each.id}" for each in busy)
        return f"waits until {names} leave{'s' if len(busy) == 1 else ''} the machine"

    def _quarantine(self, row: JobRow) -> bool:
        return row.lane > Lane.HEALTH and rigs.rig_of(row.queue) in self._shut

    def _waiting(self, row: JobRow, ahead_seconds: float | None, depth: int) -> Expectation:
        least = self._least_wait(row)
        frees = (self._first_free(row.queue), self._machine_free(row.queue))
        known = [each for each in frees if each is not None]
        if least is None or len(known) < len(frees):
            return UNKNOWN
        free = max(known)
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
        number = row.id or 0
        if number not in self._needs:
            self._needs |= open_needs_of(self._session, [number])
        holding = self._needs[number]
        if not holding or depth >= DEEPEST:
            return None
        ends = [self.alone(need, depth=depth + 1).when.ends_in for need in holding]
        known = [end.total_seconds() for end in ends if end is not None]
        return max(known) if len(known) == len(ends) else None


def _machine_of(worker: str) -> str:
    """Which machine and home a worker's name tells of; another one for each that tells none."""
    return worker.partition("@")[2] or worker
