"""Finds forks: the newest page at every look, the whole list once a day; absence means little."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from datetime import datetime
from typing import Any

from sqlmodel import Session

from jobs.db import reading, writing
from jobs.sightings import RepositoryRow
from jobs.store import forks, source_states
from scout.github.absent import ask_for_absent, count_absent
from scout.github.answers import Answer, Kind
from scout.github.base import Happening, Outcome, Repo, record, unanswered
from scout.github.blocks import note_blocked
from scout.github.desk import Desk, Held, Page
from scout.github.governor import Pace, Tier
from scout.github.keeping import Place, keep
from scout.github.repository_facts import RepositoryFacts, read_facts
from scout.github.walked import Census

NEWEST, CENSUS = "github_forks", "github_census"
NEWEST_PACE = Pace({Tier.CHAIN: 10, Tier.WATCHED: 10})
CENSUS_PACE = Pace(dict.fromkeys(Tier, 24 * 60))
CENSUS_TIER = Tier.EVERYTHING
"""The daily walk can wait, also where it begins at the top of the chain."""
MOST_NEW_PAGES = 10
PLAINLY_SHORT = 0.5
"""A page may be full and show less, for some forks are hidden; never so many."""
MOST_CENSUS_PAGES = 4000
"""No list is that long: its pages lead in a circle."""


def look_newest(desk: Desk, repo: Repo) -> Outcome:
    """Read the newest forks until one is known; nothing before the first whole census."""
    with reading(desk.database) as session:
        if not counted(session, repo):
            return Outcome()
    first = Page(_list(repo), {"sort": "newest", "per_page": "100"})
    answer = desk.ask(first, repo.tier)
    if (outcome := unanswered(answer)) or not isinstance(answer, Answer):
        return outcome or Outcome()
    if answer.kind is not Kind.PAGE:
        return Outcome(note_blocked(desk, repo, answer, source=NEWEST))
    found, page, last = read_items(answer.items), 1, answer
    while last.next_url and page < MOST_NEW_PAGES:
        with reading(desk.database) as session:
            if forks.known_ids(session, [each.github_id for each in found]):
                break
        more = desk.ask(Page(last.next_url), repo.tier, conditional=False)
        if (outcome := unanswered(more)) or not isinstance(more, Answer):
            return outcome or Outcome()
        if more.kind is not Kind.PAGE:
            return Outcome(failed=Answer(Kind.NOT_KNOWN, more.status, reason="a page vanished"))
        found, page, last = [*found, *read_items(more.items)], page + 1, more
    with writing(desk.database) as session:
        new = keep_all(session, repo, found, source=NEWEST, told=True, now=desk.now())
        desk.remember(session, first, answer)
        return Outcome(new)


def take_census(desk: Desk, repo: Repo) -> Outcome:
    """Walk the whole list of forks; only a walk that reached its end counts what it missed."""
    key = f"{CENSUS}:{repo.github_id}"
    new: list[Happening] = []
    with reading(desk.database) as session:
        row = source_states.source_state(session, key)
        cursor = dict(row.cursor) if row else {}
    census = Census.read(cursor, desk.now())
    walked = _walked(desk, census.read_pages(_list(repo)))
    while True:
        if census.number > MOST_CENSUS_PAGES:
            _give_up(desk, repo, key, cursor, census)
            return Outcome(tuple(new), failed=_not_known("its list of forks has no end"))
        page = census.page(_list(repo))
        answer = _ask(desk, page)
        if (outcome := unanswered(answer)) or not isinstance(answer, Answer):
            if outcome and outcome.failed:
                _save(desk, key, {**cursor, "census": census.after_failure().as_json()})
            return Outcome(tuple(new), outcome.held, outcome.failed) if outcome else Outcome()
        if answer.kind in (Kind.MISSING, Kind.BLOCKED):
            if census.number > 1:
                _give_up(desk, repo, key, cursor, census)
            new += note_blocked(desk, repo, answer, source=CENSUS)
            return Outcome(tuple(new), note=f"{repo.full_name}: {answer.reason}")
        if answer.kind is Kind.EMPTY:
            return Outcome(tuple(new))  # of an empty repository, or in the middle of a list: no end
        ids = _ids(desk, page, answer)
        if ids <= walked if ids else answer.items and _leads_on(answer, census.per_page):
            _give_up(desk, repo, key, cursor, census)
            return Outcome(tuple(new), failed=_not_known("a page of its forks brings nothing new"))
        walked |= ids
        with writing(desk.database) as session:
            state = source_states.lock_source_state(session, key, desk.now())
            told = bool(cursor.get("counted_at"))
            more, news = _take(desk, session, repo, page, answer, told=told, size=census.per_page)
            new += news
            if more:
                census = census.after()
                cursor["census"] = census.as_json()
                state.cursor = dict(cursor)
        if not more:
            return Outcome((*new, *_finish(desk, repo, key, census)))
        if desk.is_late():
            return Outcome(tuple(new), unfinished=True)


def _walked(desk: Desk, pages: Iterable[Page]) -> set[int]:
    """Whom those pages of a walk that goes on have shown."""
    with reading(desk.database) as session:
        return {each for page in pages for each in desk.remembered(session, page).get("ids", ())}


def _ids(desk: Desk, page: Page, answer: Answer) -> set[int]:
    """Whom a page shows; an unchanged one shows whom it showed."""
    if answer.kind is Kind.UNCHANGED:
        return _walked(desk, [page])
    return {facts.github_id for facts in read_items(answer.items)}


def _ask(desk: Desk, page: Page) -> Answer | Held:
    """A last page near its full size is read anew: unchanged, it says nothing of one behind it."""
    with reading(desk.database) as session:
        kept = desk.remembered(session, page)
    settled = bool(kept.get("more") or kept.get("short"))
    answer = desk.ask(page, CENSUS_TIER, conditional=settled)
    if isinstance(answer, Held):
        return answer
    if answer.kind is Kind.PAGE and answer.next_url and not answer.items:
        return _not_known("an empty page is said to have another behind it")
    return answer


def _finish(desk: Desk, repo: Repo, key: str, census: Census) -> tuple[Happening, ...]:
    """The list was read to its end: count whom it did not show."""
    since = census.started_at
    answers = ask_for_absent(desk, repo, CENSUS_TIER, since=since)
    with writing(desk.database) as session:
        now = desk.now()
        state = source_states.lock_source_state(session, key, now)
        new = count_absent(session, repo, answers, since=since, source=CENSUS, now=now)
        state.cursor = {"counted_at": now.isoformat()}
    return new


def _give_up(desk: Desk, repo: Repo, key: str, cursor: Mapping[str, Any], census: Census) -> None:
    """Begin anew, and take nothing for unchanged that led here."""
    pages = [*census.read_pages(_list(repo)), census.page(_list(repo))]
    with writing(desk.database) as session:
        desk.forget(session, pages)
        state = source_states.lock_source_state(session, key, desk.now())
        state.cursor = {k: v for k, v in cursor.items() if k != "census"}


def _not_known(reason: str) -> Answer:
    return Answer(Kind.NOT_KNOWN, 200, reason=reason)


def read_items(items: Iterable[Mapping[str, Any]]) -> list[RepositoryFacts]:
    """Every fork once, in order, whatever a page repeats; what has no usable name is left out."""
    found = {facts.github_id: facts for facts in map(read_facts, items) if facts}
    return list(found.values())


def _take(
    desk: Desk, session: Session, repo: Repo, page: Page, answer: Answer, *, told: bool, size: int
) -> tuple[bool, tuple[Happening, ...]]:
    """Keep what a page says; whether another may be behind it."""
    if answer.kind is Kind.UNCHANGED:
        kept = desk.remembered(session, page)
        forks.mark_seen(session, kept.get("ids", []), desk.now())
        desk.remember(session, page, answer)
        return bool(kept.get("more")), ()
    found = read_items(answer.items)
    new = keep_all(session, repo, found, source=CENSUS, told=told, now=desk.now())
    ids = [facts.github_id for facts in found]
    more = _leads_on(answer, size)
    short = len(answer.items) < size * PLAINLY_SHORT
    desk.remember(session, page, answer, ids=ids, more=more, short=short)
    return more, new


def _leads_on(answer: Answer, size: int) -> bool:
    """Whether another page may lie behind it: a full one is not taken for the last."""
    return bool(answer.next_url) or len(answer.items) >= size


def keep_all(
    session: Session,
    repo: Repo,
    found: Iterable[RepositoryFacts],
    *,
    source: str,
    told: bool,
    now: datetime,
) -> tuple[Happening, ...]:
    """Write what was seen of a repository's forks; new ones are events where they are `told`."""
    found = [facts.believed(now) for facts in found]
    known = forks.known_ids(session, [facts.github_id for facts in found])
    above = forks.depth_of(session, repo.github_id)
    place = Place(repo.github_id, repo.root_id, None if above is None else above + 1)
    new: list[Happening] = []
    for facts in found:
        before = known.get(facts.github_id)
        if facts.github_id == repo.github_id:
            continue  # nothing is its own fork
        if before and before.state != forks.KNOWN and _is_asked(before):
            continue  # whether it is back its own page says
        row, changed = keep(session, before, facts, place=place, now=now)
        if before is None:
            changed = [_new_fork(repo, facts, place)] if told or _younger(facts, repo) else []
        elif row.tier > Tier.CANDIDATE:
            changed = []
        fork = Repo(facts.github_id, facts.full_name, Tier(row.tier), row.engine_id)
        new += record(session, changed, source=source, repo=fork, now=now)
    session.flush()
    return tuple(new)


def _is_asked(row: RepositoryRow) -> bool:
    """Whether its own page is looked at: it is watched, or blocked and thus missed by a count."""
    return row.tier <= Tier.WATCHED or row.state == forks.BLOCKED


def _new_fork(repo: Repo, facts: RepositoryFacts, place: Place) -> Happening:
    return Happening(
        "new_fork",
        f"gh:fork:{facts.github_id}",
        f"{facts.full_name} was forked from {repo.full_name}",
        {
            "parent_id": repo.github_id,
            "root_id": repo.root_id,
            "depth": place.depth,
            "owner": facts.owner,
            "created_at": facts.created_at.isoformat() if facts.created_at else None,
            "pushed_at": facts.pushed_at.isoformat() if facts.pushed_at else None,
            "default_branch": facts.default_branch,
            "stars": facts.stars,
            "description": facts.description,
        },
        facts.created_at,
    )


def _younger(facts: RepositoryFacts, repo: Repo) -> bool:
    """Forked while we watched: news even where the list is read for the first time."""
    return bool(facts.created_at and repo.watched_since and facts.created_at > repo.watched_since)


def counted(session: Session, repo: Repo) -> bool:
    """Whether the whole list of forks was read once, so that a fork nobody knows is new."""
    row = source_states.source_state(session, f"{CENSUS}:{repo.github_id}")
    return bool(row and row.cursor.get("counted_at"))


def _save(desk: Desk, key: str, cursor: Mapping[str, Any]) -> None:
    with writing(desk.database) as session:
        source_states.lock_source_state(session, key, desk.now()).cursor = dict(cursor)


def _list(repo: Repo) -> str:
    return f"repositories/{repo.github_id}/forks"
