"""One round over GitHub: what is due, closest tier first; a place without an answer waits alone."""

from __future__ import annotations

from collections.abc import Callable, Collection
from dataclasses import dataclass
from datetime import datetime, timedelta

import structlog

from jobs.db import reading, writing
from jobs.errors import UsageError, did_you_mean
from jobs.sightings import SourceStateRow
from jobs.store import source_states
from scout.github import forks as fork_lists
from scout.github import linked, pushes, repositories, search
from scout.github.answers import Answer, Kind, advice_for, backoff_until
from scout.github.base import Happening, Outcome, record
from scout.github.desk import Desk
from scout.github.visits import FOR_TOKENS_ONLY, SOURCES, Visit, visits_of
from scout.health import Tally, judge

IDENTITY = "github_token"
"""How the token itself fares is kept and told like a source."""
ANONYMOUS_LIMIT = 60
"""The hourly quota of whoever has no token; with one it is in the thousands."""
FORGET_AFTER = timedelta(days=45)

log = structlog.get_logger()


@dataclass(frozen=True)
class Round:
    """What a round did: places looked at, events, what had no answer, and who waits for whom.

    `unanswered` counts places that were asked in vain; `remarks` are no trouble, and each is made
    once.
    """

    looked: int = 0
    unanswered: int = 0
    new: tuple[Happening, ...] = ()
    troubles: tuple[str, ...] = ()
    waiting: tuple[str, ...] = ()
    requests: int = 0
    remarks: tuple[str, ...] = ()


def checked(source: str, *, besides: Collection[str] = ()) -> tuple[str, ...]:
    """The names of sources that one word of a person means; `besides` are words of others."""
    if source == "github":
        return SOURCES
    if source in (fork_lists.NEWEST, pushes.NAME):
        return (repositories.NAME, fork_lists.CENSUS, source)
    if source not in SOURCES:
        words = [*SOURCES, "github", *besides]
        raise UsageError(
            f"unknown source {source[:80]!r}",
            advice=did_you_mean(source, words, most=len(words)),
        )
    alone = source in (linked.NAME, search.NAME)
    return (source,) if alone else (repositories.NAME, source)


def look_around(
    desk: Desk,
    sources: Collection[str] = SOURCES,
    *,
    force: bool = False,
    on_look: Callable[[str], None] | None = None,
) -> Round:
    """Look at everything that is due; with `force`, at everything.

    Cool-downs and the quota hold in either case. `on_look` hears of each place before it is asked.
    """
    before = desk.client.requests_made
    new: list[Happening] = []
    tallies: dict[str, Tally] = {}
    waiting: dict[str, str] = {}
    notes: list[str] = []
    for source in (name for name in SOURCES if name in sources):
        with reading(desk.database) as session:
            visits = list(visits_of(session, desk, source))
            states = source_states.source_states(session, f"{source}:")
        for visit in visits:
            if desk.is_late():
                break
            state = states.get(visit.key)
            if not force and state and not _is_due(visit, state, desk.now()):
                continue
            if on_look is not None:
                on_look(f"{visit.name} ({source})")
            outcome = _visit(desk, visit)
            new += outcome.new
            notes += [outcome.note] if outcome.note else []
            if outcome.held:
                waiting[source] = f"{outcome.held.reason} (until {outcome.held.until:%H:%M} UTC)"
                break
            _count(tallies.setdefault(source, Tally()), visit, outcome)
    for source, tally in tallies.items():
        new += _health(desk, source, tally)
        notes += tally.reasons
    with writing(desk.database) as session:
        desk.note_token(session)
        quota = desk.quota(session)
        source_states.forget_source_states(
            session, "page:", now=desk.now(), older_than=FORGET_AFTER
        )
    if quota and not desk.client.anonymous:
        token = _token_tally(quota.limit)
        new += _health(desk, IDENTITY, token)
        notes += token.reasons
    return Round(
        looked=sum(each.good for each in tallies.values()),
        unanswered=sum(each.bad for each in tallies.values()),
        new=tuple(new),
        troubles=tuple(notes),
        waiting=tuple(f"{source}: {why}" for source, why in waiting.items()),
        requests=desk.client.requests_made - before,
        remarks=_remarks(desk, sources),
    )


def _is_due(visit: Visit, state: SourceStateRow, now: datetime) -> bool:
    if state.retry_at is None or state.retry_at <= now:
        return True
    stirred = visit.stirred_at is not None and visit.stirred_at > state.updated_at
    return stirred and not state.failures


def _remarks(desk: Desk, sources: Collection[str]) -> tuple[str, ...]:
    """What works only with a token is said once, and again after a token was there."""
    said = []
    with writing(desk.database) as session:
        for source in (name for name in FOR_TOKENS_ONLY if name in sources):
            state = source_states.lock_source_state(session, f"source:{source}", desk.now())
            skipped = desk.client.anonymous
            if skipped and not state.cursor.get("skipped"):
                said.append(f"{source} needs a token (FORKSCOUT_GITHUB_TOKEN) and is left out")
            if skipped != bool(state.cursor.get("skipped")):
                state.cursor = {**state.cursor, "skipped": skipped}
    return tuple(said)


def _visit(desk: Desk, visit: Visit) -> Outcome:
    """Look, and write down when to look again; a crash is our fault and stops nobody else."""
    try:
        outcome = visit.look()
    except Exception as fault:
        log.exception("look crashed", source=visit.source, place=visit.name)
        reason = f"a fault of forkscout, {type(fault).__name__}; see the log"
        outcome = Outcome(failed=Answer(Kind.NOT_KNOWN, reason=reason))
    now = desk.now()
    if outcome.held is not None:
        return outcome
    with writing(desk.database) as session:
        state = source_states.lock_source_state(session, visit.key, now)
        _reschedule(state, visit, outcome, now=now, anonymous=desk.client.anonymous)
    return outcome


def _reschedule(
    state: SourceStateRow, visit: Visit, outcome: Outcome, *, now: datetime, anonymous: bool
) -> None:
    if outcome.unfinished:
        state.retry_at = now
        return
    if outcome.failed is not None:
        state.failures += 1
        state.status = outcome.failed.status
        state.retry_at = backoff_until(outcome.failed, failures=state.failures, now=now)
        return
    pause = visit.pace.after(visit.tier, anonymous=anonymous) or timedelta(hours=1)
    state.failures, state.status, state.retry_at = 0, 200, now + pause


def _count(tally: Tally, visit: Visit, outcome: Outcome) -> None:
    failed = outcome.failed
    if failed is None:
        tally.good += 1
        return
    limited = failed.limit is not None
    tally.fail(visit.name, failed.reason, status=failed.status, limited=limited)


def _token_tally(limit: int) -> Tally:
    """Whether GitHub takes the token at all: it may ignore one silently."""
    if limit > ANONYMOUS_LIMIT:
        return Tally(good=1)
    reason = "it counts us as anonymous, the token is not taken"
    tally = Tally()
    tally.fail("GitHub", reason, status=None, limited=True)
    return tally


def _health(desk: Desk, source: str, tally: Tally) -> tuple[Happening, ...]:
    """Tell when a source stops answering and when it answers again, once each."""
    now = desk.now()
    with writing(desk.database) as session:
        state = source_states.lock_source_state(session, f"source:{source}", now)
        cooling = source_states.source_state(session, f"cooldown:{desk.client.identity}")
        retry_at = cooling.retry_at if cooling else None
        told = judge(state, source, tally, advise=advice_for, retry_at=retry_at, now=now)
        return record(session, told, source=source, repo=None, now=now)
