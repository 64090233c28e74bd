"""What past jobs of a queue took; read once for many requests, and never written."""

from __future__ import annotations

from sqlalchemy import select
from sqlmodel import Session, col

from jobs.estimates import Past, likely_seconds
from jobs.model import State
from jobs.planner import JobRequest
from jobs.tables import JobRow

MOST_READ = 200
"""How many of the newest ended jobs of a queue are looked at."""


class Durations:
    """The newest ended jobs of each queue that is asked about."""

    def __init__(self, session: Session) -> None:
        self._session = session
        self._past: dict[str, list[Past]] = {}

    def likely_seconds(self, request: JobRequest) -> float | None:
        """The request's own estimate, else what jobs like it took; None where none ever ran."""
        if request.estimate_seconds is not None:
            return request.estimate_seconds
        return likely_seconds(request.kind, request.payload, self.of(request.queue))

    def of(self, queue: str) -> list[Past]:
        """The newest jobs of a queue that succeeded, newest first.

        An import took no time here, and after a clock that was set back nobody knows how long.
        """
        if queue not in self._past:
            self._past[queue] = self._read(queue)
        return self._past[queue]

    def _read(self, queue: str) -> list[Past]:
        newest = (
            select(
                col(JobRow.kind),
                col(JobRow.payload),
                col(JobRow.started_at),
                col(JobRow.finished_at),
                col(JobRow.state),
            )
            .where(col(JobRow.queue) == queue, col(JobRow.finished_at).is_not(None))
            .order_by(col(JobRow.finished_at).desc())
            .limit(MOST_READ)
        )
        return [
            Past(kind, payload, (finished - started).total_seconds())
            for kind, payload, started, finished, state in self._session.execute(newest)
            if state == State.SUCCEEDED.value and started and finished and finished > started
        ]
