"""One round over the model hub: hints, lists, repositories, headers; a fault stops one place."""

from __future__ import annotations

from collections.abc import Callable, Collection
from dataclasses import dataclass, field
from datetime import datetime, timedelta

import httpx
import structlog
from sqlmodel import Session

from jobs.db import reading, writing
from jobs.errors import UsageError, did_you_mean
from jobs.sightings import HubRepositoryRow, SourceStateRow
from jobs.store import hub, source_states
from scout.github.base import Happening, record
from scout.health import Tally, judge
from scout.hub import headers, lists, repositories
from scout.hub.answers import Answer, Kind, advice_for
from scout.hub.desk import Desk, Outcome, backoff_until
from scout.hub.lists import Watch
from scout.hub.repositories import Wanted

SOURCES = (lists.NAME, repositories.NAME)
ALL = "hf"
FIRST_LOOKS, HEADERS = "first looks", "headers"
"""These wait alone: they are many, or charged to another quota."""
LIST_PACE = timedelta(minutes=4)
"""Less than the schedule's default, or each second round would come a moment too early."""
MOST_REPOSITORIES = 200
"""Repositories one round looks at; the rest is due in the next."""

log = structlog.get_logger()


@dataclass(frozen=True)
class HubRound:
    """What a round did: places looked at, events, what had no answer, and who waits for whom.

    `unanswered` counts places that were asked in vain.
    """

    looked: int = 0
    unanswered: int = 0
    new: tuple[Happening, ...] = ()
    troubles: tuple[str, ...] = ()
    waiting: tuple[str, ...] = ()
    requests: int = 0


@dataclass
class _Round:
    """A round while it goes on."""

    desk: Desk
    on_look: Callable[[str], None]
    new: list[Happening] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    waiting: dict[str, str] = field(default_factory=dict)
    tallies: dict[str, Tally] = field(default_factory=dict)

    def take(
        self, source: str, name: str, look: Callable[[], Outcome], *, kind: str = ""
    ) -> Outcome | None:
        """One look; None where no more of its kind may be asked for in this round."""
        waiter = f"{source} {kind}".rstrip()
        if self.desk.is_late() or waiter in self.waiting:
            return None
        self.on_look(f"{name} ({source})")
        try:
            outcome = look()
        except Exception as fault:
            log.exception("look crashed", source=source, place=name)
            reason = f"a fault of forkscout, {type(fault).__name__}; see the log"
            outcome = Outcome(failed=Answer(Kind.NOT_KNOWN, reason=reason))
        self.new += outcome.new
        self.notes += [outcome.note] if outcome.note else []
        if outcome.held:
            self.waiting[waiter] = f"{outcome.held.reason} (until {outcome.held.until:%H:%M} UTC)"
            return None
        tally = self.tallies.setdefault(source, Tally())
        if outcome.failed is None:
            tally.good += 1
        else:
            failed = outcome.failed
            tally.fail(name, failed.reason, status=failed.status, limited=failed.limited)
        return outcome


def checked(source: str) -> tuple[str, ...]:
    """The sources that one word of a person means."""
    if source == ALL:
        return SOURCES
    if source not in SOURCES:
        raise UsageError(
            f"unknown source {source[:80]!r}", advice=did_you_mean(source, [ALL, *SOURCES])
        )
    return (source,)


def has_work(session: Session) -> bool:
    """Whether anything on the hub is watched."""
    return bool(hub.watches(session))


def look_around(
    desk: Desk,
    sources: Collection[str] = SOURCES,
    *,
    force: bool = False,
    on_look: Callable[[str], None] | None = None,
    http: httpx.Client | None = None,
) -> HubRound:
    """Look at everything that is due; with `force`, at every place of the watch list.

    Cool-downs and quotas hold in either case. `on_look` hears of each place before it is asked.
    """
    before = desk.client.requests_made
    going = _Round(desk, on_look or _unheard)
    with reading(desk.database) as session:
        watched = {row.watch: list(row.roles) for row in hub.watches(session)}
        states = source_states.source_states(session, f"{lists.NAME}:")
    if repositories.NAME in sources:
        _follow_hints(going, watched)
    if lists.NAME in sources:
        for text in watched:
            watch = Watch(text)
            if watch.kind != "repo" and (force or _is_due(states.get(watch.key), desk.now())):
                _look_at_list(going, watch)
    if repositories.NAME in sources:
        _look_at_repositories(going, watched, force=force)
        _read_headers(going, watched, http)
    for source, tally in going.tallies.items():
        going.new += _health(desk, source, tally)
        going.notes += tally.reasons
    with writing(desk.database) as session:
        source_states.forget_source_states(
            session, hub.HINT, now=desk.now(), older_than=hub.HINTS_KEPT
        )
    return HubRound(
        looked=sum(each.good for each in going.tallies.values()),
        unanswered=sum(each.bad for each in going.tallies.values()),
        new=tuple(going.new),
        troubles=tuple(going.notes),
        waiting=tuple(f"{source}: {why}" for source, why in going.waiting.items()),
        requests=desk.client.requests_made - before,
    )


def _unheard(_name: str) -> None:
    """Nobody listens."""


def _is_due(state: SourceStateRow | None, now: datetime) -> bool:
    return state is None or state.retry_at is None or state.retry_at <= now


def _look_at_list(going: _Round, watch: Watch) -> None:
    outcome = going.take(lists.NAME, watch.text, lambda: lists.look(going.desk, watch))
    if outcome is not None:
        _reschedule(going.desk, watch.key, outcome, pace=LIST_PACE)


def _reschedule(desk: Desk, key: str, outcome: Outcome, *, pace: timedelta) -> None:
    now = desk.now()
    with writing(desk.database) as session:
        state = source_states.lock_source_state(session, key, now)
        if outcome.failed is not None:
            state.failures += 1
            state.status = outcome.failed.status
            state.retry_at = backoff_until(outcome.failed, failures=state.failures, now=now)
        else:
            state.failures, state.status, state.retry_at = 0, 200, now + pace


def _follow_hints(going: _Round, watched: Collection[str]) -> None:
    """Look at what a webhook named, where it is watched; what it said is not believed."""
    desk = going.desk
    with reading(desk.database) as session:
        hints = hub.open_hints(session, limit=MOST_REPOSITORIES)
    for hint in hints:
        hub_id, name = str(hint.cursor["hub_id"]), str(hint.cursor["name"])
        with reading(desk.database) as session:
            row = hub.repository(session, hub_id)
        wanted = Wanted.of(row) if row else None
        watch = f"author:{name.partition('/')[0]}"
        if wanted is None and watch in watched:
            wanted = Wanted(name, watch=watch, is_new=_has_baseline(desk, watch))
        if wanted is not None:
            look = _looking(desk, wanted)
            if going.take(repositories.NAME, wanted.full_name, look) is None:
                return
        with writing(desk.database) as session:
            hub.close_hint(session, hint.key, desk.now())


def _looking(desk: Desk, wanted: Wanted) -> Callable[[], Outcome]:
    return lambda: repositories.look(desk, wanted)


def _has_baseline(desk: Desk, watch: str) -> bool:
    with reading(desk.database) as session:
        state = source_states.source_state(session, Watch(watch).key)
    return state is not None and bool(state.cursor.get("whole"))


def _look_at_repositories(going: _Round, watched: Collection[str], *, force: bool) -> None:
    desk = going.desk
    for text in watched:
        if text.startswith("repo:"):
            _look_at_named(going, text, force=force)
    with reading(desk.database) as session:
        rows = hub.due_repositories(session, desk.now(), watched=watched, limit=MOST_REPOSITORIES)
    for row in rows:
        wanted = Wanted.of(row)
        kind = FIRST_LOOKS if wanted.can_wait else ""
        outcome = going.take(repositories.NAME, row.full_name, _looking(desk, wanted), kind=kind)
        if outcome is not None and outcome.unfinished:
            with reading(desk.database) as session:
                again = session.get(HubRepositoryRow, row.id)
            if again is not None:
                going.take(repositories.NAME, row.full_name, _looking(desk, Wanted.of(again)))


def _look_at_named(going: _Round, watch: str, *, force: bool) -> None:
    """A repository by its name until it was found; then by its row, which knows its id."""
    desk, name, key = going.desk, watch.partition(":")[2], f"{repositories.NAME}:{watch}"
    with reading(desk.database) as session:
        rows = hub.watched_repositories(session, watch)
        state = source_states.source_state(session, key)
    if rows:
        for row in rows if force else ():
            going.take(repositories.NAME, row.full_name, _looking(desk, Wanted.of(row)))
        return
    if not force and not _is_due(state, desk.now()):
        return
    is_new = state is not None and bool(state.cursor.get("missing"))
    wanted = Wanted(name, watch=watch, is_new=is_new)
    outcome = going.take(repositories.NAME, name, _looking(desk, wanted))
    if outcome is None:
        return
    _reschedule(desk, key, outcome, pace=repositories.CLOSE)
    if outcome.note:
        with writing(desk.database) as session:
            row_state = source_states.lock_source_state(session, key, desk.now())
            row_state.cursor = {"missing": True}


def _read_headers(going: _Round, watched: dict[str, list[str]], http: httpx.Client | None) -> None:
    desk = going.desk
    with reading(desk.database) as session:
        due = hub.pending_repositories(session, watched=watched, limit=MOST_REPOSITORIES)

    def roles(row: HubRepositoryRow) -> set[str]:
        return {role for watch in row.watches for role in watched.get(watch, ())}

    for each in due:
        going.take(
            repositories.NAME,
            f"headers of {each.full_name}",
            lambda each=each: headers.read_pending(desk, each.id or 0, roles, http=http),  # type: ignore[misc]
            kind=HEADERS,
        )


def _health(desk: Desk, source: str, tally: Tally) -> tuple[Happening, ...]:
    now = desk.now()
    with writing(desk.database) as session:
        state = source_states.lock_source_state(session, f"source:{source}", now)
        retry_at = desk.cooldown_until(session)
        told = judge(state, source, tally, advise=advice_for, retry_at=retry_at, now=now)
        return record(session, told, source=source, repo=None, now=now)
