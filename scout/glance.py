"""One look by hand over every source; a part that fails hides nothing of what the others saw."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import asdict, dataclass, field, replace
from typing import Any

import structlog
from sqlalchemy import Engine

from jobs import clock
from jobs.config import Settings
from jobs.db import reading, writing
from jobs.dispatch import plan_events
from jobs.errors import ScoutError, UsageError
from jobs.tables import JobRow
from scout.candidates import look_at_candidates
from scout.github import releases, repositories
from scout.github.desk import open_desk
from scout.github.rounds import Round, checked, look_around
from scout.github.visits import FOR_TOKENS_ONLY, SOURCES
from scout.hub import rounds as hub_rounds
from scout.hub.desk import open_desk as open_hub_desk
from scout.hub.rounds import HubRound
from scout.rounds import CANDIDATES, PARTS, ensure_watchlist, look_and_plan
from scout.watch import Summary

WITHOUT_TOKEN = (repositories.NAME, releases.NAME)
"""What sixty requests an hour are enough for."""
CANDIDATES_COUNT, CANDIDATES_SECONDS = 100, 60.0
"""How many candidates a person waits for, and how long; the schedule takes less at a time."""
PUBLIC_API = Settings.model_fields["github_api"].default

log = structlog.get_logger()


@dataclass(frozen=True)
class Glance:
    """What a look by hand saw; a part that was not asked is None."""

    summary: Summary = field(default_factory=Summary)
    github: Round | None = None
    hub: HubRound | None = None
    remarks: tuple[str, ...] = ()
    jobs: tuple[JobRow, ...] = ()

    @property
    def new(self) -> list[dict[str, str]]:
        """All news, in the order in which it was found."""
        rounds = [each for each in (self.github, self.hub) if each]
        found = [*self.summary.new, *(news for each in rounds for news in each.new)]
        return [{"kind": each.kind, "key": each.key, "title": each.title} for each in found]

    @property
    def troubles(self) -> list[dict[str, str]]:
        """Every place without an answer, why, and what to do."""
        found = [asdict(each) for each in self.summary.troubles]
        lines = [("GitHub", line) for line in self.github.troubles] if self.github else []
        lines += [("the model hub", line) for line in self.hub.troubles] if self.hub else []
        for whole, line in lines:
            place, colon, why = line.partition(": ")
            named = (place, why) if colon else (whole, line)
            found.append({"engine": named[0], "message": named[1], "advice": ""})
        return found

    @property
    def went_well(self) -> bool:
        """Whether every place that was to be looked at was."""
        return not self.troubles and not self.waiting

    @property
    def waiting(self) -> tuple[str, ...]:
        """Who was not asked, and until when."""
        return tuple(line for each in (self.github, self.hub) if each for line in each.waiting)

    def as_json(self) -> dict[str, Any]:
        """All of it as one object."""
        github, hub = self.github, self.hub
        return {
            "looked": {name: list(labels) for name, labels in self.summary.looked.items()},
            "new": self.new,
            "troubles": self.troubles,
            "unwatched": list(self.summary.unwatched),
            "github": github
            and {
                "looked": github.looked,
                "requests": github.requests,
                "waiting": list(github.waiting),
            },
            "hub": hub
            and {
                "looked": hub.looked,
                "requests": hub.requests,
                "waiting": list(hub.waiting),
            },
            "remarks": list(self.remarks),
            "jobs": [job.id for job in self.jobs],
        }


def glance(
    database: Engine,
    settings: Settings,
    source: str = "",
    *,
    on_look: Callable[[str], None] | None = None,
) -> Glance:
    """Look at everything, or at one source whether it is due or not, and queue what it asks for."""
    hub_names = hub_rounds.checked(source) if source.startswith(hub_rounds.ALL) else ()
    names = () if hub_names else _github_sources(settings, source)
    ensure_watchlist(database, settings)
    summary, jobs = Summary(), list[JobRow]()
    if not source:
        summary, jobs = look_and_plan(database, settings, on_look=on_look)
    elif source in PARTS:
        summary, jobs = look_and_plan(database, settings, parts=(source,), on_look=on_look)
        summary = replace(summary, unwatched=())
    if source in ("", CANDIDATES):
        looked = look_at_candidates(
            database,
            network=settings.network,
            now=clock.now,
            count=CANDIDATES_COUNT,
            seconds=CANDIDATES_SECONDS,
            on_look=on_look,
            token=settings.github_token,
        )
        summary = summary.joined(looked.summary)
    of_hub = _look_at_hub(database, settings, hub_names, forced=bool(source), on_look=on_look)
    if of_hub is not None:
        with writing(database) as session:
            jobs += plan_events(session, clock.now())
    if not names:
        return Glance(summary, hub=of_hub, remarks=_unasked(source), jobs=tuple(jobs))
    try:
        desk = open_desk(database, settings)
        found = look_around(desk, names, force=bool(source), on_look=on_look)
    except Exception as fault:
        if source:
            raise
        found = Round(troubles=(_said(fault),))
    with writing(database) as session:
        jobs += plan_events(session, clock.now())
    return Glance(summary, found, of_hub, _remarks(settings, source, found), tuple(jobs))


def _look_at_hub(
    database: Engine,
    settings: Settings,
    names: tuple[str, ...],
    *,
    forced: bool,
    on_look: Callable[[str], None] | None,
) -> HubRound | None:
    """What is watched on the model hub; None where nothing is, or another source was named."""
    with reading(database) as session:
        if forced and not names:
            return None
        if not hub_rounds.has_work(session):
            if not names:
                return None
            raise UsageError(
                "nothing on the model hub is watched",
                advice='add a [[models]] entry with watch = "author:..." to the watch list',
            )
    try:
        desk = open_hub_desk(database, settings)
        sources = names or hub_rounds.SOURCES
        return hub_rounds.look_around(desk, sources, force=bool(names), on_look=on_look)
    except Exception as fault:
        if forced:
            raise
        return HubRound(troubles=(_said(fault, "the model hub"),))


def _github_sources(settings: Settings, source: str) -> tuple[str, ...]:
    """The sources of GitHub that are meant; none where nobody set it up, or another was named."""
    token = bool(settings.github_token.get_secret_value().strip())
    if source in (*PARTS, CANDIDATES):
        return ()
    if source:
        names = checked(source, besides=(*PARTS, CANDIDATES, hub_rounds.ALL, *hub_rounds.SOURCES))
        if source in FOR_TOKENS_ONLY and not token:
            raise UsageError(
                f"{source} needs a token", advice="set FORKSCOUT_GITHUB_TOKEN to a read-only one"
            )
        return names
    if token:
        return SOURCES
    return WITHOUT_TOKEN if settings.github_api != PUBLIC_API else ()


def _unasked(source: str) -> tuple[str, ...]:
    if source:
        return ()
    return ("GitHub's API was not asked: set FORKSCOUT_GITHUB_TOKEN to hear of forks and releases",)


def _remarks(settings: Settings, source: str, found: Round) -> tuple[str, ...]:
    if source or settings.github_token.get_secret_value().strip():
        return found.remarks
    names = ", ".join(WITHOUT_TOKEN)
    return (*found.remarks, f"without a token only {names} were due; set FORKSCOUT_GITHUB_TOKEN")


def _said(fault: Exception, whole: str = "GitHub") -> str:
    if isinstance(fault, ScoutError):
        return f"{whole}: {fault.message}; {fault.advice}".rstrip("; ")
    log.exception("round crashed", exc_info=fault)
    return f"{whole}: a fault of forkscout, {type(fault).__name__}; see the log"
