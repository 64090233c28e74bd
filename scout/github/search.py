"""Searches for copies that are no forks on paper; what it finds is a name alike, not a proof."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from sqlmodel import Session

from jobs.db import reading, writing
from jobs.store import forks, source_states
from scout.github.answers import SEARCH, Answer, Kind
from scout.github.base import Happening, Outcome, Repo, record, unanswered
from scout.github.desk import Desk, Page
from scout.github.governor import CANDIDATE_DAYS, Pace, Tier
from scout.github.keeping import Place, keep
from scout.github.repository_facts import RepositoryFacts, read_facts
from scout.github.texts import part

NAME = "github_search"
PACE = Pace({Tier.EVERYTHING: 24 * 60})
TIER = Tier.CHAIN
"""Nobody else draws on the quota of searches, so that none of it is left to others."""
UNLINKED = "unlinked"
PUSHED_WITHIN = timedelta(days=CANDIDATE_DAYS)
MOST_NAMES = 20
MOST_PAGES = 3
SHORTEST_NAME = 4
"""A shorter name is a word that half of GitHub uses."""
_OPERATORS = frozenset({"AND", "OR", "NOT"})


@dataclass(frozen=True)
class Search:
    """One name to be searched for; it has a baseline of its own."""

    name: str

    @property
    def key(self) -> str:
        """Under what the look's state is kept."""
        return f"{NAME}:{hashlib.sha256(self.name.encode()).hexdigest()[:16]}"

    def page(self, now: datetime) -> Page:
        """The first page, the last moved first."""
        since = (now - PUSHED_WITHIN).date().isoformat()
        words = f"{self.name} in:name fork:false pushed:>{since}"
        params = {"q": words, "sort": "updated", "order": "desc", "per_page": "100"}
        return Page("search/repositories", params, many=False, bucket=SEARCH)


def searches(families: Iterable[str], repos: Iterable[str]) -> list[Search]:
    """What the watch list gives to search for: its families, and each repository's own name."""
    own = (repo.partition("/")[2] for repo in repos)
    found: dict[str, Search] = {}
    for name in (*families, *own):
        if len(name) >= SHORTEST_NAME and name not in _OPERATORS:
            found.setdefault(name.lower(), Search(name))
    return list(found.values())[:MOST_NAMES]


def look(desk: Desk, search: Search) -> Outcome:
    """One search. The first is a baseline; a list that GitHub cut short is not the whole of it."""
    with reading(desk.database) as session:
        row = source_states.source_state(session, search.key)
        told = bool(row and row.cursor.get("searched_at"))
    page: Page | None = search.page(desk.now())
    found: list[RepositoryFacts] = []
    whole = True
    for _ in range(MOST_PAGES):
        if page is None:
            break
        answer = desk.ask(page, TIER, conditional=False)
        if (outcome := unanswered(answer)) or not isinstance(answer, Answer):
            return outcome or Outcome()
        items = part(answer.items[0], "items") if answer.items else None
        if answer.kind is not Kind.PAGE or not isinstance(items, list):
            reason = answer.reason or "no list of repositories"
            return Outcome(failed=Answer(Kind.NOT_KNOWN, answer.status, reason=reason))
        whole = whole and part(answer.items[0], "incomplete_results") is False
        found += [facts for each in items if (facts := _unlinked(each))]
        next_url = answer.next_url
        page = Page(next_url, many=False, bucket=SEARCH) if next_url else None
    with writing(desk.database) as session:
        new = _keep(session, search, found, told=told, now=desk.now())
        if whole:
            state = source_states.lock_source_state(session, search.key, desk.now())
            state.cursor = {"name": search.name, "searched_at": desk.now().isoformat()}
    if whole:
        return Outcome(new)
    return Outcome(new, failed=Answer(Kind.NOT_KNOWN, 200, reason="GitHub searched only a part"))


def _unlinked(item: Any) -> RepositoryFacts | None:
    if not isinstance(item, Mapping):
        return None
    if item.get("fork") is not False or item.get("private") is not False:
        return None
    return read_facts(item)


def _keep(
    session: Session,
    search: Search,
    found: Iterable[RepositoryFacts],
    *,
    told: bool,
    now: datetime,
) -> tuple[Happening, ...]:
    unique = {facts.github_id: facts for facts in found}
    known = forks.known_ids(session, unique)
    new: list[Happening] = []
    for facts in unique.values():
        before = known.get(facts.github_id)
        if before is not None and (not before.facts.get(UNLINKED) or before.engine_id is not None):
            continue
        place = Place(None, facts.github_id, None)
        row, _ = keep(session, before, facts, place=place, now=now)
        row.facts = {**row.facts, UNLINKED: True}
        session.flush()
        if before is None and told:
            happening = [_copy_found(search, facts)]
            new += record(session, happening, source=NAME, repo=Repo.of(row), now=now)
    return tuple(new)


def _copy_found(search: Search, facts: RepositoryFacts) -> Happening:
    return Happening(
        "copy_found",
        f"gh:copy:{facts.github_id}",
        f"{facts.full_name} is named like {search.name} and is no fork",
        {
            "owner": facts.owner,
            "searched_for": search.name,
            "created_at": facts.created_at.isoformat() if facts.created_at else None,
            "pushed_at": facts.pushed_at.isoformat() if facts.pushed_at else None,
            "default_branch": facts.default_branch,
            "stars": facts.stars,
            "description": facts.description,
        },
        facts.created_at,
    )
