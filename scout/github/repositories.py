"""Looks at one watched repository: its id, name, default branch, and whether it is still there."""

from __future__ import annotations

from dataclasses import dataclass, replace

from sqlmodel import Session

from jobs.db import writing
from jobs.sightings import RepositoryRow
from jobs.store import catalog, forks
from scout.github.answers import Answer, Kind
from scout.github.base import Happening, Outcome, Repo, record, unanswered
from scout.github.desk import Desk, Page
from scout.github.governor import Pace, Tier
from scout.github.keeping import MISSED_SINCE, Place, block, keep, miss
from scout.github.names import check_names
from scout.github.repository_facts import AWAY, RepositoryFacts, called, read_facts, returned

NAME = "github_repositories"
PACE = Pace({Tier.CHAIN: 15, Tier.WATCHED: 60})


@dataclass(frozen=True)
class Wanted:
    """A repository the watch list names; its id is known after the first good look.

    `listed` is the name that the watch list writes.
    """

    full_name: str
    engine_id: int | None = None
    github_id: int | None = None
    tier: Tier = Tier.CHAIN
    listed: str = ""

    @property
    def key(self) -> str:
        """Under what the look's state is kept."""
        if self.engine_id is not None:
            return f"{NAME}:engine:{self.engine_id}"
        return f"{NAME}:{self.github_id}"

    @property
    def page(self) -> Page:
        """By id once it is known: a name can pass to somebody else."""
        if self.github_id is not None:
            return Page(f"repositories/{self.github_id}", many=False)
        return Page(f"repos/{self.full_name}", many=False)


def look(desk: Desk, wanted: Wanted) -> Outcome:
    """One look; only a reply that names the repository changes what we know of it."""
    outcome = _look(desk, wanted)
    if outcome.held or outcome.failed or wanted.engine_id is None or wanted.github_id is None:
        return outcome
    more = check_names(desk, wanted.github_id, wanted.listed, source=NAME)
    return replace(outcome, new=(*outcome.new, *more))


def _look(desk: Desk, wanted: Wanted) -> Outcome:
    # What a name showed another look says nothing of a repository that has no number yet.
    answer = desk.ask(wanted.page, wanted.tier, conditional=wanted.github_id is not None)
    if isinstance(answer, Answer) and answer.kind is Kind.PAGE:
        return _found(desk, wanted, answer)
    if (outcome := unanswered(answer)) or not isinstance(answer, Answer):
        return outcome or Outcome()
    with writing(desk.database) as session:
        row = _row(session, wanted)
        if row is None:
            return Outcome(note=_nowhere(wanted, answer))
        return _not_shown(desk, session, row, wanted, answer)


def _not_shown(
    desk: Desk, session: Session, row: RepositoryRow, wanted: Wanted, answer: Answer
) -> Outcome:
    now, news = desk.now(), list[Happening]()
    if answer.kind is Kind.UNCHANGED:
        if row.state in AWAY:
            was, row.state = row.state, forks.KNOWN
            news.append(returned(called(row), row.full_name, was=was, pushed_at=row.pushed_at))
        row.facts = {k: v for k, v in row.facts.items() if k != MISSED_SINCE}
        row.misses, row.last_seen_at = 0, now
        desk.remember(session, wanted.page, answer)
    elif answer.kind is Kind.BLOCKED:
        news += block(session, row, status=answer.status, now=now)
    elif answer.kind is Kind.MISSING:
        happening = miss(session, row, now=now)
        news += [happening] if happening else []
    session.add(row)
    new = record(session, news, source=NAME, repo=Repo.of(row), now=now)
    nowhere = answer.kind is Kind.MISSING and wanted.engine_id is not None
    return Outcome(new, note=_nowhere(wanted, answer) if nowhere else "")


def _nowhere(wanted: Wanted, answer: Answer) -> str:
    """A name of the watch list that nobody has is said at every look."""
    return f"{wanted.listed or wanted.full_name}: {answer.reason}; check the name in the watch list"


def _found(desk: Desk, wanted: Wanted, answer: Answer) -> Outcome:
    facts = read_facts(answer.items[0]) if answer.items else None
    if facts is None or wanted.github_id not in (None, facts.github_id):
        return Outcome(failed=Answer(Kind.NOT_KNOWN, 200, reason="another repository answered"))
    with writing(desk.database) as session:
        now = desk.now()
        row = forks.repository(session, facts.github_id) or _row(session, wanted)
        if row is None:
            row = RepositoryRow(
                full_name=wanted.full_name, first_seen_at=now, last_seen_at=now, facts={}
            )
        if not catalog.is_watched(session, row.engine_id):
            row.engine_id = wanted.engine_id or row.engine_id
        place = _place(session, facts)
        row, news = keep(session, row, facts, place=place, now=now, moved=answer.moved)
        session.flush()
        desk.remember(session, wanted.page, answer)
        return Outcome(record(session, news, source=NAME, repo=Repo.of(row), now=now))


def _row(session: Session, wanted: Wanted) -> RepositoryRow | None:
    if wanted.github_id is not None:
        return forks.repository(session, wanted.github_id)
    if wanted.engine_id is None:
        return None
    return forks.repository_of_engine(session, wanted.engine_id)


def _place(session: Session, facts: RepositoryFacts) -> Place:
    above = forks.depth_of(session, facts.parent_id) if facts.parent_id else None
    depth = above + 1 if above is not None else 0 if facts.parent_id is None else None
    if above is None and facts.parent_id is not None and facts.parent_id == facts.root_id:
        depth = 1
    return Place(facts.parent_id, facts.root_id or facts.github_id, depth)
