"""One look by hand over every source; a part that fails hides nothing of what the others saw."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, field, replace
from typing import Any

import structlog
from sqlalchemy import Engine

from jobs import clock
from jobs.config import Settings
from jobs.db import reading
from jobs.errors import ScoutError, UsageError
from jobs.planning_round import plan_round
from jobs.tables import JobRow
from scout.candidate_identity import by_number
from scout.candidates import look_at_candidates
from scout.github import releases, repositories
from scout.github.answers import advice_for
from scout.github.desk import open_desk
from scout.github.rounds import Round, checked, look_around
from scout.github.visits import FOR_TOKENS_ONLY, SOURCES
from scout.health import note_round
from scout.hub import rounds as hub_rounds
from scout.hub.answers import advice_for as hub_advice_for
from scout.hub.desk import open_desk as open_hub_desk
from scout.hub.rounds import HubRound
from scout.rounds import CANDIDATES, PARTS, ensure_watchlist, look_and_plan
from scout.scores import keep_scores
from scout.setbacks import going_on
from scout.watch import Summary, Trouble

WITHOUT_TOKEN = (repositories.NAME, releases.NAME)
"""What sixty requests an hour are enough for."""
CANDIDATES_COUNT, CANDIDATES_SECONDS = 100, 60.0
"""How many candidates a person waits for, and how long; the schedule takes less at a time."""
PUBLIC_API = Settings.model_fields["github_api"].default

log = structlog.get_logger()


SHOWN_PLACES = 3
THE_HUB = "the model hub"


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
    def troubles(self) -> list[dict[str, Any]]:
        """Every place without an answer, why, and what to do."""
        found = _merged(self.summary.troubles)
        if self.github:
            found += _grouped(self.github.troubles, "GitHub", advice_for)
        if self.hub:
            found += _grouped(self.hub.troubles, THE_HUB, hub_advice_for)
        return found

    @property
    def went_well(self) -> bool:
        """Whether every watched place that was to be looked at was; strangers may be missing."""
        ours = [each for each in self.troubles if not each["of_a_stranger"]]
        return not ours and not self.waits

    @property
    def waits(self) -> list[tuple[str, str, str]]:
        """Sources that were not asked, why, and what to do; those that wait for the same in one."""
        found: dict[tuple[str, str], list[str]] = {}
        for each, advise in ((self.github, advice_for), (self.hub, hub_advice_for)):
            for line in each.waiting if each else ():
                source, _, why = line.partition(": ")
                found.setdefault((why, advise(why)), []).append(source)
        return [(", ".join(sources), why, advice) for (why, advice), sources in found.items()]

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
                "unanswered": github.unanswered,
                "requests": github.requests,
                "waiting": list(github.waiting),
            },
            "hub": hub
            and {
                "looked": hub.looked,
                "unanswered": hub.unanswered,
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
    on_note: Callable[[str], None] | None = None,
) -> Glance:
    """Look at everything, or at one source whether it is due or not, and queue what it asks for."""
    hub_names = hub_rounds.checked(source) if source.startswith(hub_rounds.ALL) else ()
    names = () if hub_names else _github_sources(settings, source)
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
        setbacks: list[Trouble] = []
        with going_on(setbacks, CANDIDATES):
            looked = look_at_candidates(
                database,
                network=settings.network,
                now=clock.now,
                count=CANDIDATES_COUNT,
                seconds=CANDIDATES_SECONDS,
                force=bool(source),
                on_look=on_look,
                token=settings.github_token,
                ask=by_number(lambda: open_desk(database, settings))
                if _asks_github(settings)
                else None,
            )
            summary = summary.joined(looked.summary)
            note_round(database, CANDIDATES, looked.summary, now=clock.now())
            keep_scores(database, now=clock.now)
        summary = summary.joined(Summary(troubles=tuple(setbacks)))
    of_hub = _look_at_hub(database, settings, hub_names, forced=bool(source), on_look=on_look)
    late: list[Trouble] = []
    if of_hub is not None:
        with going_on(late, "what is to be queued"):
            jobs += plan_round(database, budget_hours=settings.budget_hours_per_day)
        summary = summary.joined(Summary(troubles=tuple(late)))
    if not names:
        return Glance(summary, hub=of_hub, remarks=_unasked(source), jobs=tuple(jobs))
    try:
        desk = open_desk(database, settings)
        found = look_around(desk, names, force=bool(source), on_look=on_look)
    except Exception as fault:
        if source:
            raise
        found = Round(troubles=(_said(fault),))
    late = []
    with going_on(late, "what is to be queued"):
        keep_scores(database, now=clock.now)
        jobs += plan_round(database, budget_hours=settings.budget_hours_per_day)
    summary = summary.joined(Summary(troubles=tuple(late)))
    return Glance(summary, found, of_hub, _remarks(settings, source, found), tuple(jobs))


def _asks_github(settings: Settings) -> bool:
    """Whether GitHub's API may be asked where nobody named a source of it."""
    token = settings.github_token.get_secret_value().strip()
    return bool(token) or settings.github_api != PUBLIC_API


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
        return HubRound(troubles=(_said(fault, THE_HUB),))


def _github_sources(settings: Settings, source: str) -> tuple[str, ...]:
    """The sources of GitHub that are meant; none where nobody set it up, or another was named."""
    token = bool(settings.github_token.get_secret_value().strip())
    if source in (*PARTS, CANDIDATES):
        return ()
    if source:
        names = checked(source, besides=(*PARTS, CANDIDATES, hub_rounds.ALL, *hub_rounds.SOURCES))
        if source in FOR_TOKENS_ONLY and not token:
            raise UsageError(
                f"{source} needs a token",
                advice="set FORKSCOUT_GITHUB_TOKEN; docs/scouting.md says how to make one",
            )
        return names
    if token:
        return SOURCES
    return WITHOUT_TOKEN if _asks_github(settings) else ()


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


def _grouped(
    lines: Sequence[str], whole: str, advise: Callable[[str], str]
) -> list[dict[str, Any]]:
    """Troubles of one service, those of one reason as one."""
    reasons: dict[str, dict[str, None]] = {}
    for line in lines:
        place, colon, why = line.partition(": ")
        reasons.setdefault(why if colon else line, {})[place if colon else whole] = None
    return [
        asdict(Trouble(_places(list(places)), why, advise(why))) for why, places in reasons.items()
    ]


def _merged(troubles: Sequence[Trouble]) -> list[dict[str, Any]]:
    """One of two engines that share a repository and its failure says it for both."""
    names: dict[tuple[str, str, bool], list[str]] = {}
    for each in troubles:
        names.setdefault((each.message, each.advice, each.of_a_stranger), []).append(each.engine)
    return [
        asdict(Trouble(", ".join(dict.fromkeys(engines)), *same)) for same, engines in names.items()
    ]


def _places(names: Sequence[str]) -> str:
    """Places that failed for one reason, in one breath."""
    more = len(names) - SHOWN_PLACES
    return ", ".join(names[:SHOWN_PLACES]) + (f" and {more} more" if more > 0 else "")


def _said(fault: Exception, whole: str = "GitHub") -> str:
    if isinstance(fault, ScoutError):
        return f"{whole}: {fault.message}; {fault.advice}".rstrip("; ")
    log.exception("round crashed", exc_info=fault)
    return f"{whole}: a fault of forkscout, {type(fault).__name__}; see the log"
