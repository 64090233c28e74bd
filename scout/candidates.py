"""The loop around forks that nobody builds: list those somebody pushed to, fetch, judge, tell.

A fork's first sight is its baseline, and no news of it builds anything. One failure stops no other,
and no fork holds the network longer than its time.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence, Set
from dataclasses import asdict, dataclass
from datetime import datetime, timedelta
from pathlib import Path

import structlog
from pydantic import SecretStr
from sqlalchemy import Engine

from jobs import git_network
from jobs.db import reading, writing
from jobs.errors import ScoutError, Transient
from jobs.git import repo_url
from jobs.git_network import TAG
from jobs.sightings import RepositoryRow
from jobs.store import refs, source_states, standings
from scout.candidate_identity import Ask, confirm, is_doubtful
from scout.candidate_news import candidate_news
from scout.candidate_record import failed, write
from scout.candidate_rows import candidate, known, long_gone
from scout.candidate_values import Candidate, Source, due, in_turn, key_of
from scout.history import GitHistory, History
from scout.kinship import Kin, kindred
from scout.ref_values import RefNews
from scout.sources import git_refs
from scout.watch import Summary, Trouble
from scout.yardsticks import Yardstick, facts_of, yardstick

COUNT, SECONDS = 20, 20.0
"""What one round of the schedule looks at, and how long it starts new looks."""
LONGEST_SECONDS = 60.0
"""How long one candidate may take: the watched engines wait for the network as long."""

_log = structlog.get_logger(__name__)


@dataclass(frozen=True)
class CandidateRound:
    """One round: forks looked at, what is new, what failed, how many are still due."""

    looked: tuple[str, ...] = ()
    new: tuple[RefNews, ...] = ()
    troubles: tuple[Trouble, ...] = ()
    left: int = 0

    @property
    def summary(self) -> Summary:
        """The round as one of engines is told."""
        return Summary(dict.fromkeys(self.looked, ("looked at",)), self.new, self.troubles)


@dataclass(frozen=True)
class _Round:
    database: Engine
    network: Path
    now: Callable[[], datetime]
    source: Source
    token: SecretStr | None
    ask: Ask | None

    def history(self, started: datetime) -> History:
        return GitHistory(self.network, token=self.token, tick=self.tick(started))

    def failed(self, name: str, repository: int, error: Exception) -> Trouble:
        return failed(self.database, self.now(), name, repository, error)

    def tick(self, started: datetime) -> Callable[[], None]:
        """Ends what one candidate does once its time is over."""

        def check() -> None:
            if (self.now() - started).total_seconds() > LONGEST_SECONDS:
                raise Transient(
                    f"it took longer than {LONGEST_SECONDS:g} s", advice="it is tried again later"
                )

        return check


def look_at_candidates(
    database: Engine,
    *,
    network: Path,
    now: Callable[[], datetime],
    count: int = COUNT,
    seconds: float = SECONDS,
    source: Source = git_refs,
    force: bool = False,
    on_look: Callable[[str], None] | None = None,
    token: SecretStr | None = None,
    ask: Ask | None = None,
) -> CandidateRound:
    """Look at the candidates that are due, and write what was seen; with `force`, then at others.

    Where nothing is due, no process is started. `ask` says whether a name may be a stranger's by
    now; without it nothing doubtful is told.
    """
    this = _Round(database, network, now, source, token, ask)
    until = now() + timedelta(seconds=seconds)
    with reading(database) as session:
        rows, states = known(session)
        waiting = due(rows, states, now=now())
        waiting += in_turn(rows, states, without=waiting) if force else []
        kin = kindred(session) if waiting else {}
    troubles = _tidied(this, long_gone(rows, states, now()), fetched=bool(waiting))
    yards: dict[str, Yardstick] = {}
    seen: dict[int, Mapping[str, str]] = {}
    asked: dict[int, Candidate] = {}
    tried = 0
    for row in waiting[:count]:
        if now() >= until:
            break
        tried += 1
        if on_look is not None:
            on_look(row.full_name)
        try:
            with reading(database) as session:
                one = candidate(session, row, kin)
            if one.root not in yards:
                yards[one.root] = yardstick(this.history(now()), kin, one.root)
            known_here = yards[one.root].graph.shas
            seen[one.repository] = _look(this, one, kin[one.root].refs, known_here)
            asked[one.repository] = one
        except Exception as error:
            troubles.append(this.failed(row.full_name, row.id or 0, error))
    stop = until + timedelta(seconds=LONGEST_SECONDS)
    new, more, looked = _judge(this, asked, seen, kin, yards, stop)
    return CandidateRound(tuple(looked), tuple(new), (*troubles, *more), len(waiting) - tried)


def _look(
    this: _Round, one: Candidate, theirs: Mapping[str, str], known_here: Set[str]
) -> Mapping[str, str]:
    """The fork's own refs: all its branches, and the tags it did not get from its elders."""
    above = one.parent.refs if one.parent else {}
    found = this.source.look_at_candidate(
        one.full_name,
        network=this.network,
        number=one.repository,
        known=known_here | set(above.values()),
        tick=this.tick(this.now()),
        token=this.token,
    )
    if found.refused:
        _log.warning("ref names refused", repository=one.full_name, count=found.refused)
    return {
        ref: sha
        for ref, sha in found.commits.items()
        if not ref.startswith(TAG) or sha not in (theirs.get(ref), above.get(ref))
    }


def _judge(
    this: _Round,
    asked: Mapping[int, Candidate],
    seen: Mapping[int, Mapping[str, str]],
    kin: Mapping[str, Kin],
    yards: Mapping[str, Yardstick],
    stop: datetime,
) -> tuple[list[RefNews], list[Trouble], list[str]]:
    """What is new, what failed, who was looked at; what it had no time for is looked at again."""
    new: list[RefNews] = []
    looked: list[str] = []
    troubles: list[Trouble] = []
    for root in dict.fromkeys(one.root for one in asked.values()):
        group = [one for one in asked.values() if one.root == root]
        try:
            yard = _with_rooms(this, group, seen, kin, yards[root])
        except Exception as error:
            troubles += [this.failed(one.full_name, one.repository, error) for one in group]
            continue
        for one in group:
            if this.now() >= stop:
                break
            try:
                new += _record(this, one, seen[one.repository], yard)
                looked.append(one.full_name)
            except Exception as error:
                troubles.append(this.failed(one.full_name, one.repository, error))
    return new, troubles, looked


def _with_rooms(
    this: _Round,
    group: Sequence[Candidate],
    seen: Mapping[int, Mapping[str, str]],
    kin: Mapping[str, Kin],
    yard: Yardstick,
) -> Yardstick:
    """The yardstick with the candidates' own history, read anew where there is any."""
    engines = {one.repository for one in kin.values()}
    parents = [one.parent for one in group if one.parent]
    members = [each for each in parents if each.repository not in engines and each.refs]
    looks = [each for one in group for each in (one.refs, seen[one.repository])]
    tips = {sha for each in looks for sha in each.values()}
    if not members and tips <= yard.graph.shas:
        return yard
    numbers = [one.repository for one in group]
    history = this.history(this.now())
    return yardstick(history, kin, group[0].root, members=members, numbers=numbers)


def _record(
    this: _Round, one: Candidate, commits: Mapping[str, str], yard: Yardstick
) -> list[RefNews]:
    """Write refs, facts and events together; what another round wrote meanwhile is not new."""
    if is_doubtful(one, commits, yard.graph, now=this.now()):
        confirm(one, this.ask)
    history, url = this.history(this.now()), repo_url(one.full_name)
    parent = one.parent.repository if one.parent else None
    facts = facts_of(
        yard,
        history,
        commits,
        default_branch=one.default_branch,
        parentage=yard.parentage(parent, named=one.parent_name),
        url=url,
    )
    if facts is None and commits:
        raise Transient("its history is not here", advice="it is fetched again at the next look")
    news = candidate_news(one, commits, yard, history, url=url) if one.refs else []
    with writing(this.database) as session:
        state = source_states.lock_source_state(session, one.key, this.now())
        if refs.refs_of(session, one.repository) != one.refs:
            return []
        refs.record_refs(session, one.repository, commits, this.now())
        if facts is not None:
            standings.keep_standing(
                session,
                one.repository,
                branch=facts.branch,
                head=facts.head,
                now=this.now(),
                git={**asdict(facts), "looked_at": this.now().isoformat()},
            )
        pushed_at = one.pushed_at.isoformat() if one.pushed_at else None
        state.cursor = {"looked_at": this.now().isoformat(), "pushed_at": pushed_at}
        state.failures, state.retry_at = 0, None
        return [each for each in news if write(session, one, each, this.now())]


def _tidied(this: _Round, gone: Sequence[int], *, fetched: bool) -> list[Trouble]:
    """Forget the history of what has long been no candidate; what is known of it stays."""
    try:
        for number in gone:
            git_network.drop(this.network, number)
            with writing(this.database) as session:
                row = session.get(RepositoryRow, number)
                if row is None or row.engine_id is None:
                    refs.forget_refs(session, number)
                source_states.forget_source_state(session, key_of(number))
        if fetched:
            git_network.tidy(this.network)
    except ScoutError as error:
        return [Trouble("the network of forks", error.message, error.advice)]
    return []
