"""Forks that a whole list did not show: counted as missed, and gone only by their own page."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime

from sqlmodel import Session

from jobs.db import reading
from jobs.sightings import RepositoryRow
from jobs.store import forks
from scout.github.answers import Answer, Kind
from scout.github.base import Happening, Repo, record
from scout.github.desk import Desk, Held, Page
from scout.github.governor import Tier
from scout.github.keeping import Place, block, keep, miss, would_be_gone
from scout.github.repository_facts import read_facts

MOST_ASKED = 50
"""So many own pages are asked for after one count; who is left waits for the next."""
Answers = Mapping[int, Answer]


def ask_for_absent(desk: Desk, repo: Repo, tier: Tier, *, since: datetime) -> dict[int, Answer]:
    """What the own pages of those say whom one more miss would declare gone."""
    now = desk.now()
    with reading(desk.database) as session:
        rows = _absent(session, repo, since)
        due = [row.github_id for row in rows if row.github_id and would_be_gone(row, now)]
    found: dict[int, Answer] = {}
    for github_id in due[:MOST_ASKED]:
        if desk.is_late():
            break
        page = Page(f"repositories/{github_id}", many=False)
        answer = desk.ask(page, tier, conditional=False)
        if isinstance(answer, Held):
            break
        found[github_id] = answer
    return found


def count_absent(
    session: Session, repo: Repo, answers: Answers, *, since: datetime, source: str, now: datetime
) -> tuple[Happening, ...]:
    """Count a miss for each whom the list did not show; doubt counts for none."""
    new: list[Happening] = []
    for row in _absent(session, repo, since):
        answer = answers.get(row.github_id or 0)
        if answer is None:
            news = [] if would_be_gone(row, now) else _missed(session, row, now)
        elif answer.kind is Kind.PAGE:
            news = _alive(session, row, answer, now)
        elif answer.kind is Kind.BLOCKED:
            news = block(session, row, status=answer.status, now=now)
        else:
            news = _missed(session, row, now) if answer.kind is Kind.MISSING else []
        session.add(row)
        if row.tier <= Tier.CANDIDATE:
            new += record(session, news, source=source, repo=Repo.of(row), now=now)
    return tuple(new)


def _absent(session: Session, repo: Repo, since: datetime) -> list[RepositoryRow]:
    rows = forks.unseen_forks(session, repo.github_id, since=since, beyond_tier=Tier.WATCHED)
    return sorted(rows, key=lambda row: (row.tier, row.id or 0))


def _missed(session: Session, row: RepositoryRow, now: datetime) -> list[Happening]:
    happening = miss(session, row, now=now)
    return [happening] if happening else []


def _alive(session: Session, row: RepositoryRow, answer: Answer, now: datetime) -> list[Happening]:
    """It is there, wherever it stands now; another repository under its number says nothing."""
    facts = read_facts(answer.items[0]) if answer.items else None
    if facts is None or facts.github_id != row.github_id:
        return []
    above = forks.depth_of(session, facts.parent_id) if facts.parent_id else None
    depth = None if above is None else above + 1
    place = Place(facts.parent_id, facts.root_id or facts.github_id, depth)
    _, news = keep(session, row, facts, place=place, now=now)
    return news
