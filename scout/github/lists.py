"""Walks a list that is newest first until it meets what is known; all of it counts or nothing."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Protocol

from jobs.db import reading, writing
from jobs.store import source_states
from scout.github.answers import Answer, Kind
from scout.github.base import Happening, Outcome, Repo, record, unanswered
from scout.github.blocks import note_blocked
from scout.github.desk import Desk, Page
from scout.github.governor import Pace
from scout.github.texts import moment, not_after

MOST_PAGES = 10
UNTIL = "until"
"""Where a source keeps up to when it has read its list."""

Item = Mapping[str, Any]


@dataclass(frozen=True)
class Interest:
    """What makes a pull request worth telling: who offers it, or that somebody linked it."""

    repo_ids: frozenset[int] = frozenset()
    numbers: frozenset[int] = frozenset()


@dataclass(frozen=True)
class Seen:
    """What a look saw of a list, and what was remembered of it; no cursor is the first look."""

    repo: Repo
    cursor: Mapping[str, Any]
    items: Sequence[Item]
    interest: Interest
    now: datetime


@dataclass(frozen=True)
class Judged:
    """What a source remembers now, and what it has to tell."""

    cursor: dict[str, Any]
    news: tuple[Happening, ...] = ()


class ListSource(Protocol):
    """One kind of list of a repository; it describes and judges, `walk` asks and writes."""

    NAME: str
    PACE: Pace

    def first_page(self, repo: Repo, cursor: Mapping[str, Any], /) -> Page:
        """Where the list begins."""

    def reached(self, cursor: Mapping[str, Any], items: Sequence[Item], /) -> bool:
        """Whether a page holds something that is known, so that the rest is known too."""

    def judge(self, seen: Seen, /) -> Judged:
        """What is new; the first look tells nothing."""


def bounded(cursor: Mapping[str, Any], now: datetime) -> dict[str, Any]:
    """What is remembered, its mark not after now: all that follows would lie before it for good."""
    until = not_after(moment(cursor.get(UNTIL)), now)
    return {**cursor, UNTIL: until.isoformat()} if until else dict(cursor)


def walk(desk: Desk, source: ListSource, repo: Repo, interest: Interest) -> Outcome:
    """One look at one list. A page that cannot be had leaves everything as it was."""
    key = f"{source.NAME}:{repo.github_id}"
    with reading(desk.database) as session:
        row = source_states.source_state(session, key)
        cursor = bounded(row.cursor if row else {}, desk.now())
    first = source.first_page(repo, cursor)
    answer = desk.ask(first, repo.tier)
    if (outcome := unanswered(answer)) or not isinstance(answer, Answer):
        return outcome or Outcome()
    if answer.kind is not Kind.PAGE:
        with writing(desk.database) as session:
            desk.remember(session, first, answer)
        new = note_blocked(desk, repo, answer, source=source.NAME)
        return Outcome(new, note="" if answer.kind is Kind.UNCHANGED else answer.reason)
    items, last, pages = list(answer.items), answer, 1
    while last.next_url and pages < MOST_PAGES and not source.reached(cursor, last.items):
        more = desk.ask(Page(last.next_url), repo.tier, conditional=False)
        if (outcome := unanswered(more)) or not isinstance(more, Answer):
            return outcome or Outcome()
        if more.kind is not Kind.PAGE:
            return Outcome(failed=Answer(Kind.NOT_KNOWN, more.status, reason="a page vanished"))
        items, last, pages = [*items, *more.items], more, pages + 1
    judged = source.judge(Seen(repo, cursor, items, interest, desk.now()))
    with writing(desk.database) as session:
        now = desk.now()
        source_states.lock_source_state(session, key, now).cursor = bounded(judged.cursor, now)
        new = record(session, judged.news, source=source.NAME, repo=repo, now=now)
        desk.remember(session, first, answer)
    return Outcome(new)
