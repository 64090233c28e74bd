"""Which pages there are and what is on each, read from the database; writes nothing."""

from __future__ import annotations

import getpass
import re
import socket
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import datetime
from functools import partial
from pathlib import Path

from sqlmodel import Session

from jobs.config import Settings
from jobs.lifecycle import SOURCE_SHARE
from jobs.model import State
from jobs.store import (
    approvals,
    board,
    builds,
    chains,
    led,
    overview,
    reasons,
    rig_boots,
    shown_negatives,
    workshop,
)
from jobs.store.shown_budgets import shown_budgets
from web import (
    build_pages,
    fit_site,
    fork_pages,
    negative_pages,
    pages,
    rig_pages,
    worker_pages,
)
from web.fit_wish import Asked
from web.logs import tail
from web.ranking import Board, TellsApart, boards, boots_apart
from web.redact import redact

_RESULT = re.compile(r"results/([1-9][0-9]{0,8})\.html", re.ASCII)
_FORK = re.compile(r"forks/([1-9][0-9]{0,8})\.html", re.ASCII)
_EVENT = re.compile(r"events/([1-9][0-9]{0,8})\.html", re.ASCII)
LOOPBACK = ("127.0.0.1", "localhost", "[::1]")
_RIG = re.compile(r"rigs/([1-9][0-9]{0,8})\.html", re.ASCII)
_BUILD = re.compile(r"builds/([1-9][0-9]{0,8})\.html", re.ASCII)
_JOB = re.compile(r"jobs/([1-9][0-9]{0,8})\.html", re.ASCII)


@dataclass(frozen=True)
class Site:
    """What pages need besides the database: logs, and what is private on this machine."""

    log_of: Callable[[int], Path]
    clean: Callable[[str], str]
    silent_seconds: float
    tells_apart: TellsApart = boots_apart
    share: float = SOURCE_SHARE
    budget_hours: float = 0.0

    def boards(self, session: Session) -> tuple[Board, ...]:
        """The leaderboard, group by group."""
        return boards(board.leaderboard(session), self.tells_apart)

    def page(
        self, path: str, session: Session, *, now: datetime, asked: Asked | None = None
    ) -> pages.Page | None:
        """The page at `path`, or None: no other path exists.

        `asked` is the query of a live request, None in the static export. Raises UsageError for a
        query that cannot be meant.
        """
        match path:
            case "index.html":
                front, queue = overview.front(session), overview.queue(session, now=now)
                return pages.index(front, self.boards(session), queue, now=now)
            case "leaderboard.html":
                return pages.leaderboard(self.boards(session), now=now)
            case "queue.html":
                found = overview.queue(session, now=now)
                budgets = shown_budgets(session, now, hours=self.budget_hours)
                return pages.queue(
                    found, now=now, silent_seconds=self.silent_seconds, budgets=budgets
                )
            case "workers.html":
                found_shop = workshop.workshop(session, now, silent_seconds=self.silent_seconds)
                return worker_pages.workers(found_shop)
            case "engines.html":
                return pages.engines(overview.engines(session))
            case "forks.html":
                return fork_pages.forks(chains.found(session), now=now)
            case "negatives.html":
                return negative_pages.negatives(shown_negatives.board(session, now))
            case "fit.html":
                return fit_site.page(session, asked)
            case "method.html":
                return pages.method()
        if wanted := _RESULT.fullmatch(path):
            detail = board.result(session, int(wanted[1]))
            return pages.result(detail, now=now) if detail else None
        if wanted := _FORK.fullmatch(path):
            fork = chains.fork(session, int(wanted[1]))
            if fork is None:
                return None
            stands = shown_negatives.of_repository(session, fork.fork.id, now)
            return fork_pages.fork(fork, now=now, negatives=stands)
        if wanted := _RIG.fullmatch(path):
            rig = rig_boots.measured(session, int(wanted[1]))
            return rig_pages.rig(rig) if rig else None
        if wanted := _EVENT.fullmatch(path):
            event = led.event(session, int(wanted[1]))
            return pages.event(event) if event else None
        if wanted := _JOB.fullmatch(path):
            job = overview.job(session, int(wanted[1]), now=now)
            if job is None:
                return None
            done = job.state == State.SUCCEEDED
            explained = None if done else reasons.find(session, job.id, now, share=self.share)
            made = builds.id_of_job(session, job.id)
            waits = approvals.asked_for(session, job.id)
            log = tail(self.log_of(job.id))
            return pages.job(job, log, explained, build_id=made, waits=waits)
        if wanted := _BUILD.fullmatch(path):
            build = builds.find(session, int(wanted[1]))
            if build is None:
                return None
            options = builds.options_of(session, build.id)
            return build_pages.build(build, options, tail(self.log_of(build.job_id)))
        return None

    def paths(self, session: Session) -> Iterator[str]:
        """Every page there is."""
        yield from pages.FIXED
        yield from (f"results/{number}.html" for number in board.result_ids(session))
        yield from (f"forks/{each.id}.html" for each in chains.watched(session))
        yield from (f"rigs/{number}.html" for number in rig_boots.rig_ids(session))
        yield from (f"events/{number}.html" for number in led.event_ids(session))
        yield from (f"builds/{number}.html" for number in builds.ids(session))
        yield from (f"jobs/{number}.html" for number in overview.job_ids(session))


def site_of(settings: Settings) -> Site:
    """The site of this installation: its folders, user and host are private."""
    roots = {
        str(settings.artifacts): "<artifacts>",
        str(settings.weights): "<weights>",
        str(settings.mirrors): "<mirrors>",
        str(settings.scratch): "<build>",
        str(settings.runtime): "<run>",
        str(settings.root): "<home>",
    }
    return Site(
        log_of=settings.job_log,
        clean=partial(redact, roots=roots, names=(_user(), socket.gethostname())),
        silent_seconds=settings.lease_seconds,
        share=settings.source_share,
        budget_hours=settings.budget_hours_per_day,
    )


def _user() -> str:
    try:
        return getpass.getuser()
    except (KeyError, OSError):
        return ""
