"""Every page as a value: its path, its template and what it shows; pure, no markup, no clock."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from jobs.model import Kind, State
from jobs.scenarios import SCENARIOS
from jobs.store.approvals import DEFAULT_DAYS, Waiting
from jobs.store.builds import phases_in
from jobs.store.led import EventDetail
from jobs.store.reasons import Why
from jobs.store.shown import Entry, Front, Queue, ResultDetail, ShownEngine, ShownJob
from jobs.store.shown_budgets import ShownBudget
from jobs.terminal import counted
from web import figure, reproduce, words
from web.ranking import Board, Ranked
from web.thresholds import CONSTANTS, STALE_DAYS

# Who opens the front page wants the winner and who comes close.
FRONT_LINES = 3
FRONT_CHANGES = 12

FIXED = (
    "index.html",
    "leaderboard.html",
    "queue.html",
    "workers.html",
    "engines.html",
    "forks.html",
    "negatives.html",
    "fit.html",
    "method.html",
)


@dataclass(frozen=True)
class Page:
    """One page; `path` is the same in the live app and in the export."""

    path: str
    template: str
    title: str
    values: Mapping[str, Any]
    uncaged: bool = False

    @property
    def root(self) -> str:
        """What leads from this page to the site's root."""
        return "../" * self.path.count("/")


@dataclass(frozen=True)
class Line:
    """A ranked entry with what its row draws."""

    ranked: Ranked
    bar: figure.Bar | None
    stale: bool

    @property
    def entry(self) -> Entry:
        return self.ranked.entry


@dataclass(frozen=True)
class Table:
    """One group of the leaderboard, ready to draw."""

    board: Board
    ranked: tuple[Line, ...]
    unranked: tuple[Line, ...]
    left_out: int = 0


@dataclass(frozen=True)
class Change:
    """One line of what changed lately."""

    when: datetime
    what: str
    title: str
    detail: str
    href: str | None
    uncaged: bool = False


@dataclass(frozen=True)
class LogTail:
    """The end of a job's log; `cut` where the beginning is left out."""

    text: str
    cut: bool


def index(front: Front, boards: Sequence[Board], queue: Queue, *, now: datetime) -> Page:
    """What changed, who leads, what is being done."""
    tables = [_table(board, now=now, only=FRONT_LINES) for board in boards]
    changes = _changes(front)
    return Page(
        "index.html",
        "index.html",
        "What changed",
        {"front": front, "tables": tables, "queue": queue, "changes": changes},
        uncaged=_any_uncaged(tables) or any(change.uncaged for change in changes),
    )


def leaderboard(boards: Sequence[Board], *, now: datetime) -> Page:
    """All groups with all their lines."""
    tables = [_table(board, now=now) for board in boards]
    return Page(
        "leaderboard.html",
        "leaderboard.html",
        "Leaderboard",
        {"tables": tables, "stale_days": STALE_DAYS},
        uncaged=_any_uncaged(tables),
    )


def result(detail: ResultDetail, *, now: datetime) -> Page:
    """One result with everything that is stored about it."""
    entry = detail.entry
    return Page(
        f"results/{entry.result_id}.html",
        "result.html",
        f"{entry.engine} {entry.label}",
        {
            "detail": detail,
            "entry": entry,
            "stale": _is_stale(entry, now),
            "meaning": words.VALIDITY[entry.validity],
            "figure": figure.runs_figure(detail.boots),
            "settings": reproduce.settings(detail),
            "blocks": reproduce.blocks(detail),
            "facts": reproduce.facts(detail),
            "origin": detail.environment.get("imported"),
        },
        uncaged=entry.uncaged or detail.build.sandbox == "uncaged",
    )


def queue(
    found: Queue,
    *,
    now: datetime,
    silent_seconds: float,
    budgets: Sequence[ShownBudget] = (),
) -> Page:
    """Who runs, who waits and why, what ended."""
    silent = now - timedelta(seconds=silent_seconds)
    return Page(
        "queue.html",
        "queue.html",
        "Queue",
        {
            "queue": found,
            "silent": {w.name for w in found.workers if w.beat_at < silent},
            "budgets": budgets,
        },
    )


def job(
    found: ShownJob,
    log: LogTail | None,
    explained: Why | None = None,
    *,
    build_id: int | None = None,
    waits: Waiting | None = None,
) -> Page:
    """One job: where it stands, why, its phases, what it built, and the end of its log."""
    return Page(
        f"jobs/{found.id}.html",
        "job.html",
        f"Job {found.id}",
        {
            "job": found,
            "log": log,
            "why": why(found),
            "live": State(found.state) in LIVE,
            "explained": explained,
            "build_id": build_id,
            "waits": waits,
            "may_approve": False,
            "days": DEFAULT_DAYS,
            "phases": phases_in(found.progress) if found.kind == Kind.BUILD else (),
        },
    )


def event(found: EventDetail) -> Page:
    """One event: the jobs it led to, and what was left out and why."""
    jobs, left = found.led_to.jobs, found.led_to.left_out
    left_out = f"{len(left)} {'was' if len(left) == 1 else 'were'} left out"
    said = f"It led to {counted(len(jobs), 'job')}; {left_out}."
    return Page(
        f"events/{found.id}.html", "event.html", f"Event {found.id}", {"event": found, "said": said}
    )


def engines(found: Sequence[ShownEngine]) -> Page:
    """The engines we watch and their revisions."""
    return Page("engines.html", "engines.html", "Engines", {"engines": found})


def method() -> Page:
    """How numbers and verdicts are made."""
    return Page(
        "method.html",
        "method.html",
        "Method",
        {
            "scenarios": tuple(SCENARIOS.values()),
            "validity": words.VALIDITY,
            "verdicts": words.VERDICT,
            "states": words.STATE,
            "blames": words.BLAME,
            "constants": CONSTANTS,
        },
    )


def missing(status: int, *, title: str, advice: str, path: str = "index.html") -> Page:
    """The page of an error; `path` only tells how deep it is shown."""
    return Page(path, "error.html", title, {"status": status, "advice": advice})


def why(found: ShownJob) -> str:
    """One sentence: why this job is where it is."""
    state = State(found.state)
    if found.cancel_requested and state in LIVE:
        return "It was asked to stop and is being ended."
    if found.waits_for and state in (State.QUEUED, State.BLOCKED):
        needs = ", ".join(f"job {number}" for number in found.waits_for)
        return f"It waits until {needs} succeeded."
    if state is State.BLOCKED:
        return words.blocked(found.blocked_by)
    if state is State.QUEUED and found.position is not None:
        return f"Place {found.position} in the queue {found.queue}."
    return f"{words.spoken(state).capitalize()}: {words.STATE[state]}."


LIVE = (State.QUEUED, State.BLOCKED, State.LEASED, State.RUNNING)


def _table(board: Board, *, now: datetime, only: int | None = None) -> Table:
    speeds = [
        max(line.entry.spread[1] if line.entry.spread else 0.0, line.entry.decode_tps or 0.0)
        for line in board.ranked
    ]
    fastest = max(speeds, default=0.0)
    ranked = [
        Line(line, figure.bar(line.entry, fastest), _is_stale(line.entry, now))
        for line in board.ranked
    ]
    unranked = [Line(line, None, _is_stale(line.entry, now)) for line in board.unranked]
    if only is None:
        return Table(board, tuple(ranked), tuple(unranked))
    return Table(board, tuple(ranked[:only]), (), left_out=len(ranked[only:]) + len(unranked))


def _any_uncaged(tables: Sequence[Table]) -> bool:
    return any(line.entry.uncaged for table in tables for line in (*table.ranked, *table.unranked))


def _is_stale(entry: Entry, now: datetime) -> bool:
    return now - entry.measured_at > timedelta(days=STALE_DAYS)


def _changes(front: Front) -> tuple[Change, ...]:
    changes = [
        *(
            Change(
                event.seen_at,
                words.spoken(event.kind),
                event.title,
                event.engine or "",
                f"forks/{event.fork_id}.html" if event.fork_id else None,
            )
            for event in front.events
        ),
        *(
            Change(
                entry.measured_at,
                "result",
                f"{entry.engine} {entry.label}",
                entry.verdict.sentence if entry.verdict else "not judged yet",
                f"results/{entry.result_id}.html",
                entry.uncaged,
            )
            for entry in front.results
        ),
        *(
            Change(
                job.finished_at or job.created_at,
                f"{words.spoken(job.kind)} {job.state}",
                job.title,
                words.spoken(job.failure_class or "no class recorded"),
                f"jobs/{job.id}.html",
            )
            for job in front.failures
        ),
    ]
    return tuple(sorted(changes, key=lambda change: change.when, reverse=True)[:FRONT_CHANGES])
