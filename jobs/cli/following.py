"""Follows one job to its end on a terminal; it only looks, and leaving it ends nothing."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.markup import escape
from sqlalchemy import Engine

from jobs.cli.log_reading import LogReader
from jobs.config import Settings
from jobs.db import reading
from jobs.demo import note_of
from jobs.lifecycle import HELD, LIVE
from jobs.model import State
from jobs.store import work
from jobs.store.builds import Phase, phases_in
from jobs.tables import JobRow
from jobs.terminal import printable

LOOK_SECONDS = 0.3
KEPT_CHARS = 4000
LINE_CHARS = 100


class Told:
    """What of a job was said already; `news` gives each thing once."""

    def __init__(self) -> None:
        self._attempt = 0
        self._phases = 0
        self._message = ""

    def news(self, job: JobRow) -> Iterator[str]:
        """Lines for what happened since last time: phases that ended, attempts that failed."""
        if job.attempts != self._attempt and job.state in HELD:
            self._attempt, self._phases = job.attempts, 0
            again = f", attempt {job.attempts}" if job.attempts > 1 else ""
            yield f"job {job.id} runs on {job.leased_by}{again}"
        phases = phases_in(job.progress)
        over = phases if job.state not in HELD else phases[:-1]
        for phase in over[self._phases :]:
            yield phase_line(phase)
        self._phases = max(self._phases, len(over))
        if job.state in (State.QUEUED, State.BLOCKED) and job.message != self._message:
            self._message = job.message
            if job.message:
                cause = f" [{job.failure_class}]" if job.failure_class else ""
                yield f"it waits{cause}: {job.message}"
                if job.advice:
                    yield f"  next: {job.advice}"


def phase_line(phase: Phase) -> str:
    """One phase and how long it took."""
    return f"  {phase.name:<12} {phase.seconds:8.1f} s"


def follow(
    settings: Settings,
    database: Engine,
    job_id: int,
    *,
    say: Callable[[str], None],
    console: Console,
) -> JobRow:
    """The job as it ended, or as it stands where a person has to act before it can go on."""
    told, tail = Told(), LogTail()
    with console.status("waiting ...") as status:
        while True:
            with reading(database) as session:
                job = work.job(session, job_id)
            for line in told.news(job):
                say(printable(line))
            if State(job.state) not in LIVE or job.state == State.BLOCKED:
                return job
            tail.look(settings.job_log(job_id))
            status.update(escape(_status(job, tail.last)))
            time.sleep(LOOK_SECONDS)


def _status(job: JobRow, line: str) -> str:
    note = note_of(job)
    return f"{note}  {line[:LINE_CHARS]}" if job.state == State.RUNNING and line else note


class LogTail:
    """The last words of a log that grows."""

    def __init__(self) -> None:
        self._reader: LogReader | None = None
        self._text = ""

    def look(self, path: Path) -> None:
        """Read what came since last time."""
        if not path.exists():
            return
        if self._reader is None or self._reader.path != path:
            self._reader, self._text = LogReader(path), ""
        for piece in self._reader.new():
            self._text = (self._text + piece)[-KEPT_CHARS:]

    @property
    def last(self) -> str:
        """The newest line that says something."""
        return next(iter(self.lines(1)), "")

    def lines(self, most: int) -> list[str]:
        """The newest lines that say something, oldest first."""
        return [printable(line) for line in self._text.splitlines() if line.strip()][-most:]


def summary(job: JobRow) -> dict[str, Any]:
    """The job as the commands print it, with its phases."""
    shown = job.model_dump(exclude={"payload", "identity", "progress"})
    return {**shown, "phases": [vars(each) for each in phases_in(job.progress)]}
