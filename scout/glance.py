"""One look by hand over every source; a part that fails hides nothing of what the others saw."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, field, replace
from typing import Any

import structlog
from sqlalchemy import Engine

from jobs import clock
from jobs.config import Settings
from jobs.db import writing
from jobs.dispatch import plan_events
from jobs.errors import ScoutError, UsageError
from jobs.tables import JobRow
from scout.candidates import look_at_candidates
from scout.github import releases, repositories
from scout.github.answers import advice_for
from scout.github.desk import open_desk
from scout.github.rounds import Round, checked, look_around
from scout.github.visits import FOR_TOKENS_ONLY, SOURCES
from scout.health import note_round
from scout.rounds import CANDIDATES, PARTS, ensure_watchlist, look_and_plan
from scout.scores import keep_scores
from scout.watch import Summary, Trouble

WITHOUT_TOKEN = (repositories.NAME, releases.NAME)
"""What sixty requests an hour are enough for."""
CANDIDATES_COUNT, CANDIDATES_SECONDS = 100, 60.0
"""How many candidates a person waits for, and how long; the schedule takes less at a time."""
PUBLIC_API = Settings.model_fields["github_api"].default

log = structlog.get_logger()


SHOWN_PLACES = 3


@dataclass(frozen=True)
class Glance:
    """What a look by hand saw; `github` is None where GitHub was not asked."""

    summary: Summary = field(default_factory=Summary)
    github: Round | None = None
    remarks: tuple[str, ...] = ()
    jobs: tuple[JobRow, ...] = ()

    @property
    def new(self) -> list[dict[str, str]]:
        """All news, in the order in which it was found."""
        found = [*self.summary.new, *(self.github.new if self.github else ())]
        return [{"kind": each.kind, "key": each.key, "title": each.title} for each in found]

    @property
    def troubles(self) -> list[dict[str, Any]]:
        """Every place without an answer, why, and what to do."""
        found = [asdict(each) for each in self.summary.troubles]
        reasons: dict[str, dict[str, None]] = {}
        for line in self.github.troubles if self.github else ():
            place, colon, why = line.partition(": ")
            reasons.setdefault(why if colon else line, {})[place if colon else "GitHub"] = None
        return found + [
            asdict(Trouble(_places(list(places)), why, advice_for(why)))
            for why, places in reasons.items()
        ]

    @property
    def went_well(self) -> bool:
        """Whether every watched place that was to be looked at was; strangers may be missing."""
        ours = [each for each in self.troubles if not each["of_a_stranger"]]
        return not ours and not (self.github and self.github.waiting)

    def as_json(self) -> dict[str, Any]:
        """All of it as one object."""
        github = self.github
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
            "remarks": list(self.remarks),
            "jobs": [job.id for job in self.jobs],
        }


def glance(
    database: Engine,
    settings: Settings,
    source: str = "",
    *,
    on_look: Callable[[str], None] | None = None,
    on_note: Callable[[str], None] | None = None,
) -> Glance:
    """Look at everything, or at one source whether it is due or not, and queue what it asks for."""
    names = _github_sources(settings, source)
    said = ensure_watchlist(database, settings)
    if said and on_note is not None:
        on_note(said)
    summary, jobs = Summary(), list[JobRow]()
    if not source:
        summary, jobs = look_and_plan(database, settings, on_look=on_look)
    elif source in PARTS:
        summary, jobs = look_and_plan(
            database, settings, parts=(source,), force=True, on_look=on_look
        )
        summary = replace(summary, unwatched=())
    if source in ("", CANDIDATES):
        looked = look_at_candidates(
            database,
            network=settings.network,
            now=clock.now,
            count=CANDIDATES_COUNT,
            seconds=CANDIDATES_SECONDS,
            force=bool(source),
            on_look=on_look,
            token=settings.github_token,
        )
        note_round(database, CANDIDATES, looked.summary, now=clock.now())
        summary = summary.joined(looked.summary)
        keep_scores(database, now=clock.now)
    if not names:
        return Glance(summary, remarks=_unasked(source), jobs=tuple(jobs))
    try:
        desk = open_desk(database, settings)
        found = look_around(desk, names, force=bool(source), on_look=on_look)
    except Exception as fault:
        if source:
            raise
        found = Round(troubles=(_said(fault),))
    keep_scores(database, now=clock.now)
    with writing(database) as session:
        jobs += plan_events(session, clock.now())
    return Glance(summary, found, _remarks(settings, source, found), tuple(jobs))


def _github_sources(settings: Settings, source: str) -> tuple[str, ...]:
    """The sources of GitHub that are meant; none where nobody set it up, or another was named."""
    token = bool(settings.github_token.get_secret_value().strip())
    if source in (*PARTS, CANDIDATES):
        return ()
    if source:
        names = checked(source, besides=(*PARTS, CANDIDATES))
        if source in FOR_TOKENS_ONLY and not token:
            raise UsageError(
                f"{source} needs a token",
                advice="set FORKSCOUT_GITHUB_TOKEN; docs/scouting.md says how to make one",
            )
        return names
    if token:
        return SOURCES
    return WITHOUT_TOKEN if settings.github_api != PUBLIC_API else ()


def _unasked(source: str) -> tuple[str, ...]:
    if source:
        return ()
    return (
        "GitHub's API was not asked: set FORKSCOUT_GITHUB_TOKEN to hear of forks and releases; "
        "docs/scouting.md says how to make one",
    )


def _remarks(settings: Settings, source: str, found: Round) -> tuple[str, ...]:
    if source or settings.github_token.get_secret_value().strip():
        return found.remarks
    names = ", ".join(WITHOUT_TOKEN)
    return (*found.remarks, f"without a token only {names} were due; set FORKSCOUT_GITHUB_TOKEN")


def _places(names: Sequence[str]) -> str:
    """Places that failed for one reason, in one breath."""
    more = len(names) - SHOWN_PLACES
    return ", ".join(names[:SHOWN_PLACES]) + (f" and {more} more" if more > 0 else "")


def _said(fault: Exception) -> str:
    if isinstance(fault, ScoutError):
        return f"GitHub: {fault.message}; {fault.advice}".rstrip("; ")
    log.exception("round crashed", exc_info=fault)
    return f"GitHub: a fault of forkscout, {type(fault).__name__}; see the log"
