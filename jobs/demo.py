"""The main job once, from watching to the published board, told on the terminal."""

from __future__ import annotations

import socket
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from datetime import datetime
from typing import Any

from rich.console import Console
from rich.progress import BarColumn, Progress, SpinnerColumn, TaskID, TextColumn, TimeElapsedColumn
from rich.text import Text
from sqlalchemy import Engine

from jobs import clock, queue, up
from jobs.config import Settings
from jobs.db import open_database, reading
from jobs.errors import Permanent, UsageError
from jobs.lifecycle import HELD, LIVE
from jobs.model import State
from jobs.station import is_settled
from jobs.store import fleet, work
from jobs.tables import JobRow
from jobs.terminal import counted, printable
from jobs.up import Supervisor

SCHEDULE = "demo"
POLL_SECONDS = 0.25
WATCH_LIMIT_SECONDS = 300.0
RING_AGAIN_SECONDS = 10.0
BAD_ENDS = (State.FAILED, State.DEAD)


def run(settings: Settings, console: Console) -> int:
    """Run the demo; 0 where a board stands at the end and no job of it failed."""
    settings = _with_free_port(settings)
    settings.prepare()
    with up.only_one(settings):
        database = open_database(settings)
        asked = up.stop_on_signals()
        console.print("Starting broker, workers and site ...", style="dim")
        with up.running(settings) as supervisor:
            tour = _Tour(settings, database, supervisor, console, asked.is_set)
            outcome = tour.go()
        database.dispose()
    if outcome == 130:
        console.print("Stopped; `make demo` goes on where this ended.")
    return outcome


def _with_free_port(settings: Settings) -> Settings:
    """The demo's site is looked at for a minute only: any free port of its address will do."""
    try:
        up.check_port(settings)
    except UsageError:
        family = socket.AF_INET6 if ":" in settings.host else socket.AF_INET
        with socket.socket(family) as probe:
            try:
                probe.bind((settings.host, 0))
            except OSError:
                up.check_port(settings)
            return settings.model_copy(update={"port": probe.getsockname()[1]})
    return settings


class _Tour:
    """The demo's steps over a running system."""

    def __init__(
        self,
        settings: Settings,
        database: Engine,
        supervisor: Supervisor,
        console: Console,
        asked: Callable[[], bool],
    ) -> None:
        self.settings = settings
        self.database = database
        self.supervisor = supervisor
        self.console = console
        self.asked = asked
        self.app = queue.make_app(settings)
        self.since = clock.now()

    def go(self) -> int:
        """Watch, work, show; the exit code."""
        sighted = self._watch_sources()
        if sighted is None:
            return 130
        if not self._work_off():
            return 130
        return self._show(sighted)

    def _watch_sources(self) -> dict[str, Any] | None:
        moment = clock.now()
        self._ask_scout(moment)
        with self.console.status("Watching the package index ..."):
            outcome = self._wait_for_scout(moment)
        if outcome is None:
            return None
        for problem in outcome.get("problems", ()):
            self.console.print(Text.assemble(("problem: ", "yellow"), printable(str(problem))))
        fresh = outcome.get("new", [])
        for title in fresh:
            self.console.print(Text.assemble(("new: ", "green"), printable(str(title))))
        if not fresh:
            self.console.print("Nothing new since the last look.")
        return outcome

    def _ask_scout(self, moment: datetime) -> None:
        queue.send(self.app, "scout.watch", "scout", SCHEDULE, moment.isoformat())

    def _wait_for_scout(self, moment: datetime) -> dict[str, Any] | None:
        deadline = time.monotonic() + WATCH_LIMIT_SECONDS
        again = time.monotonic() + RING_AGAIN_SECONDS
        while time.monotonic() < deadline:
            if self.asked():
                return None
            with reading(self.database) as session:
                outcome = fleet.slot_outcome(session, SCHEDULE, moment)
            if outcome and outcome.get("state") == "done":
                return outcome
            if outcome is None and time.monotonic() > again:
                self._ask_scout(moment)
                again = time.monotonic() + RING_AGAIN_SECONDS
            self.supervisor.tend()
            time.sleep(POLL_SECONDS)
        raise Permanent(
            "the scout did not answer", advice=f"read {self.supervisor.log_path('scout')}"
        )

    def _work_off(self) -> bool:
        """Show the jobs until nothing is left that could run; False when asked to stop."""
        view = _JobView(self.console)
        with view:
            while not self.asked():
                self.supervisor.tend()
                with reading(self.database) as session:
                    rows = work.jobs(session, limit=200)
                    counts = work.count_by_state(session)
                view.show([row for row in rows if self._is_ours(row)])
                if is_settled(counts):
                    return True
                time.sleep(POLL_SECONDS)
        return False

    def _is_ours(self, row: JobRow) -> bool:
        return row.state in LIVE or bool(row.finished_at and row.finished_at >= self.since)

    def _show(self, sighted: dict[str, Any]) -> int:
        with reading(self.database) as session:
            rows = work.jobs(session, limit=500)
        failed = [row for row in rows if row.state in BAD_ENDS or row.state == State.BLOCKED]
        board = subprocess.run([sys.executable, "-m", "jobs.cli", "leaderboard"], check=False)
        page = self.settings.resolved_site / "index.html"
        if page.exists():
            self.console.print(Text.assemble("Site: ", (str(page), "bold")), soft_wrap=True)
        for row in failed:
            self.console.print(
                Text(printable(f"job {row.id} ({row.title}) is {row.state}: {row.message}"), "red"),
                soft_wrap=True,
            )
            advice = printable(row.advice) or f"forkscout logs {row.id}"
            self.console.print(Text(f"  next: {advice}"), soft_wrap=True)
        nothing_seen = bool(sighted.get("problems")) and not page.exists()
        return 1 if failed or nothing_seen or board.returncode else 0


class _JobView:
    """A bar for each job that runs and a count of the rest; one line per change off a terminal."""

    def __init__(self, console: Console) -> None:
        self.console = console
        self.bars = Progress(
            SpinnerColumn(),
            TextColumn("{task.description}", markup=False),
            BarColumn(bar_width=20),
            TextColumn("{task.fields[note]}", markup=False),
            TimeElapsedColumn(),
            console=console,
            disable=not console.is_terminal,
        )
        self.tasks: dict[int, TaskID] = {}
        self.told: dict[int, str] = {}
        self.waiting: TaskID | None = None

    def __enter__(self) -> _JobView:
        self.bars.start()
        return self

    def __exit__(self, *_: object) -> None:
        if self.waiting is not None:
            self.bars.remove_task(self.waiting)
        self.bars.stop()

    def show(self, rows: Sequence[JobRow]) -> None:
        """Bring the view up to date."""
        for row in sorted(rows, key=lambda row: row.id or 0):
            if row.state in HELD:
                self._running(row.id or 0, row)
            elif row.state not in LIVE and self.told.get(row.id or 0) != row.state:
                self._finished(row.id or 0, row)
        self._count([row for row in rows if row.state in LIVE and row.state not in HELD])

    def _running(self, number: int, row: JobRow) -> None:
        if number not in self.tasks:
            self.tasks[number] = self.bars.add_task(short_title(row), total=None, note="")
            if not self.console.is_terminal:
                self.console.print(Text(f"started: {printable(row.title)}"), soft_wrap=True)
        progress = row.progress or {}
        self.bars.update(
            self.tasks[number],
            completed=progress.get("done") or 0,
            total=progress.get("total"),
            note=note_of(row),
        )

    def _count(self, rows: Sequence[JobRow]) -> None:
        if self.waiting is None:
            self.waiting = self.bars.add_task("", total=None, note="", start=False)
        words = f"waiting: {counted(len(rows), 'job')}" if rows else "nothing else waits"
        self.bars.update(self.waiting, description=words)

    def _finished(self, number: int, row: JobRow) -> None:
        self.told[number] = row.state
        if number in self.tasks:
            self.bars.remove_task(self.tasks.pop(number))
        style = "green" if row.state == State.SUCCEEDED else "red"
        line = Text.assemble((f"{row.state}: ", style), printable(row.title))
        if row.message:
            line.append(f" - {printable(row.message)}", "dim")
        self.console.print(line, soft_wrap=True)


def short_title(row: JobRow) -> str:
    """What a job is about, without what all of them share."""
    return printable(row.title.partition(" with ")[0])


def note_of(row: JobRow) -> str:
    """What a live job is doing, in a few words."""
    if row.state == State.BLOCKED:
        return row.message or f"waits for {(row.blocked_by or '').replace(':', ' ')}"
    if row.state != State.RUNNING or not row.progress:
        return row.state
    done, total, unit = (row.progress.get(key) for key in ("done", "total", "unit"))
    amount = ""
    if done is not None and total and unit == "B":
        amount = f" {done / 1e6:.0f}/{total / 1e6:.0f} MB"
    elif done is not None and total:
        amount = f" {done / total:.0%}"
    words = f"{row.progress.get('phase', '')}{amount} {row.progress.get('note') or ''}"
    return printable(words).strip()
