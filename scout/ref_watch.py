"""The loop around repositories: list and fetch each, tell what moved; one failure stops no other.

First all repositories are brought up to date, then news is judged, so that a patch which two forks
took in the same round is told of both.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor, wait
from dataclasses import dataclass, replace
from datetime import datetime
from pathlib import Path

import structlog
from pydantic import SecretStr
from sqlalchemy import Engine

from jobs.db import reading, writing
from jobs.errors import ScoutError, Transient
from jobs.git import repo_url
from jobs.git_names import full_name, short_name
from jobs.git_network import Held, held_by
from jobs.sightings import SourceStateRow
from jobs.store import catalog, refs
from jobs.store.source_states import source_states
from scout import neighbours
from scout.branch_news import default_news
from scout.capability_news import capability_news
from scout.history import History
from scout.kinship import Kin, elders_first, kindred, root_of
from scout.ref_news import ref_news
from scout.ref_record import record, write
from scout.ref_troubles import (
    failed,
    is_in_doubt,
    missing,
    named_by_another,
    not_asked,
    too_much,
)
from scout.ref_values import Place, RefNews, View
from scout.setbacks import going_on
from scout.sources.base import RefSource, RefsSeen, Watched
from scout.sources.registry import REF_SOURCES
from scout.watch import Summary, Trouble

LOOKS_SECONDS = 600.0
"""How long one round may look: all looks end before news is judged, and one slow server must not
keep the news of all others."""
LOOKS_AT_ONCE = 16
"""Lists asked for at the same time: most of a look is waiting for the other side, and GitHub
refuses nobody below 100."""
PREFIX = "git:"
_log = structlog.get_logger(__name__)


@dataclass(frozen=True)
class _Round:
    """What one round works with."""

    database: Engine
    history: History
    network: Path
    now: Callable[[], datetime]
    sources: Mapping[str, RefSource]
    token: SecretStr | None
    held: Mapping[int, Held]
    started: datetime

    def tick(self) -> None:
        """Ends a look once the round's time for looking is over."""
        if (self.now() - self.started).total_seconds() > LOOKS_SECONDS:
            raise Transient(
                f"it did not answer within the {LOOKS_SECONDS:g} s of the round",
                advice="it is asked again later",
            )


@dataclass(frozen=True)
class _Look:
    """What one repository showed."""

    seen: RefsSeen
    default_branch: str | None


def watch_refs(
    database: Engine,
    *,
    history: History,
    network: Path,
    now: Callable[[], datetime],
    sources: Mapping[str, RefSource] = REF_SOURCES,
    force: bool = False,
    on_look: Callable[[str], None] | None = None,
    token: SecretStr | None = None,
) -> Summary:
    """Look at every engine that has a repository once and record what moved.

    One that gave no answer waits longer each time, except with `force`.
    """
    this = _Round(database, history, network, now, sources, token, held_by(network), now())
    put_off = _prepare(this)
    waiting = {} if force else put_off
    with reading(database) as session:
        kin = kindred(session)
    seen: dict[str, Mapping[str, str]] = {}
    new: list[RefNews] = []
    troubles = [not_asked(name, state) for name, state in waiting.items()]
    troubles += [taken for each in kin.values() if (taken := named_by_another(each))]
    asked = [
        name for name in elders_first(kin) if name not in waiting and not is_in_doubt(kin[name])
    ]
    for name, look in _looks(this, [kin[name] for name in asked], on_look):
        try:
            kin[name], seen[name], told = _note(this, kin[name], look.result())
            new += told
            troubles += [lacking] if (lacking := missing(kin[name], seen[name])) else []
        except Exception as error:
            troubles.append(failed(name, error))
            with going_on(troubles, name), writing(database) as session:
                refs.note_failure(session, _key(kin[name]), now(), why=troubles[-1].message)
    told, more, unjudged = _tell(this, kin, seen)
    new += told
    troubles += more
    with going_on(troubles, "what git showed"), writing(database) as session:
        judged = [_key(kin[name]) for name in seen if name not in unjudged]
        refs.note_answers(session, judged, now())
        for name, why in unjudged.items():
            refs.note_failure(session, _key(kin[name]), now(), why=why)
    looked = {name: _heads(kin[name], commits) for name, commits in seen.items()}
    return Summary(looked, tuple(new), tuple(troubles))


def _prepare(this: _Round) -> dict[str, SourceStateRow]:
    """Give every repository its row; what is known of those that failed of late."""
    waiting = {}
    with writing(this.database) as session:
        rows = [row for row in catalog.engines(session) if row.repo is not None]
        places = refs.repositories_of(session, rows, this.now())
        states = source_states(session, PREFIX)
        for row in rows:
            key = _key_of(places[row.id or 0].id or 0)
            state = states.get(key) or refs.source_state(session, key, this.now())
            if state.retry_at is not None and state.retry_at > this.now():
                waiting[row.name] = state
    return waiting


def _looks(
    this: _Round, asked: Sequence[Kin], on_look: Callable[[str], None] | None
) -> Iterator[tuple[str, Future[_Look]]]:
    """Each look as soon as it is over, in the order asked; some are under way beside it."""
    with ThreadPoolExecutor(LOOKS_AT_ONCE) as pool:
        begun = {
            kin.name: pool.submit(_look, this, source, kin)
            for kin in asked
            if (source := _source(kin, this.sources)) is not None
        }
        try:
            for name, look in begun.items():
                if on_look is not None:
                    on_look(name)
                wait([look])
                yield name, look
        finally:
            pool.shutdown(cancel_futures=True)


def _look(this: _Round, source: RefSource, kin: Kin) -> _Look:
    this.tick()
    watched = _watched(kin)
    found = source.look(
        watched,
        network=this.network,
        number=kin.repository,
        held=this.held.get(kin.repository),
        tick=this.tick,
        token=this.token,
    )
    default = kin.default_branch
    if default is None or full_name(default) not in found.commits:
        default = source.default_branch(watched, tick=this.tick, token=this.token) or default
    return _Look(found, default)


def _note(this: _Round, kin: Kin, look: _Look) -> tuple[Kin, Mapping[str, str], Sequence[RefNews]]:
    news: list[RefNews] = []
    if look.default_branch != kin.default_branch:
        found = default_news(_place(kin, {}), kin.default_branch, look.default_branch)
        with writing(this.database) as session:
            refs.name_default_branch(session, kin.repository, look.default_branch)
            news += [each for each in found if write(session, kin, each, set(), this.now())]
    if look.seen.refused:
        _log.warning("ref names refused", engine=kin.name, count=look.seen.refused)
    return replace(kin, default_branch=look.default_branch), look.seen.commits, news


def _tell(
    this: _Round, kin: Mapping[str, Kin], seen: Mapping[str, Mapping[str, str]]
) -> tuple[list[RefNews], list[Trouble], dict[str, str]]:
    """What is new, what failed, and of whom nothing was recorded because of that."""
    moved = [name for name in elders_first(kin) if name in seen and seen[name] != kin[name].refs]
    news: list[RefNews] = []
    troubles: list[Trouble] = []
    unjudged: dict[str, str] = {}
    views: dict[str, View] = {}
    judged: set[str] = set()
    known = [name for name in moved if not kin[name].is_new]
    for root in dict.fromkeys(root_of(name, kin) for name in known):
        try:
            views |= neighbours.views(this.history, kin, seen, root, known)
            judged.add(root)
        except ScoutError as error:
            troubles.append(failed(root, error))
    for name in moved:
        if name in known and name not in views:
            # Nothing is recorded, so that a later round can still tell it.
            unjudged[name] = "what it is judged by could not be read"
            if root_of(name, kin) in judged:
                troubles.append(too_much(kin[name]))
                unjudged[name] = troubles[-1].message
            continue
        try:
            told = _news(
                this, _place(kin[name], kin), kin[name], seen[name], views.get(name), troubles
            )
            news += record(this.database, kin[name], seen[name], told, now=this.now())
        except Exception as error:
            troubles.append(failed(name, error))
            unjudged[name] = troubles[-1].message
    return news, troubles, unjudged


def _news(
    this: _Round,
    place: Place,
    kin: Kin,
    commits: Mapping[str, str],
    view: View | None,
    troubles: list[Trouble],
) -> list[RefNews]:
    if view is None:
        return []
    news = ref_news(place, kin.refs, commits, view, lost=kin.lost)
    for push in [each for each in news if each.revision is not None]:
        try:
            found = capability_news(place, push, this.history, url=repo_url(kin.repo))
        except ScoutError as error:
            troubles.append(failed(kin.name, error))
            continue
        news += [found] if found is not None else []
    return news


def _place(one: Kin, kin: Mapping[str, Kin]) -> Place:
    """What another engine of the repository builds is told by that one, once it is known to it."""
    siblings = [each for each in kin.values() if each.name != one.name and each.shares(one)]
    theirs = [each.watched for each in siblings if not each.is_new]
    return Place(
        one.name,
        one.repository,
        one.github_id,
        one.default_branch,
        one.watched,
        one.siblings,
        frozenset().union(*theirs) - one.watched,
    )


def _heads(kin: Kin, commits: Mapping[str, str]) -> tuple[str, ...]:
    heads = sorted(kin.watched & commits.keys())
    return tuple(f"{short_name(ref)}@{commits[ref][:9]}" for ref in heads)


def _source(kin: Kin, sources: Mapping[str, RefSource]) -> RefSource | None:
    watched = _watched(kin)
    return next((each for each in sources.values() if each.watches(watched)), None)


def _watched(kin: Kin) -> Watched:
    return Watched(kin.name, kin.repo, None, kin.branches, is_fork=kin.parent is not None)


def _key(kin: Kin) -> str:
    return _key_of(kin.repository)


def _key_of(repository: int) -> str:
    return f"{PREFIX}{repository}"
