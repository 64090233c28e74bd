"""Looks at a list of repositories: an author's, a search's, a base model's; it opens none."""

from __future__ import annotations

from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any

from sqlmodel import Session

from jobs.db import reading, writing
from jobs.sightings import HubRepositoryRow
from jobs.store import hub, source_states
from scout.github.desk import Held
from scout.github.governor import Tier
from scout.hub.answers import Answer, Kind
from scout.hub.desk import Desk, Outcome
from scout.hub.values import Listed, read_listed

NAME = "hf_lists"
ORDERS = ("lastModified", "createdAt")
"""One order is not enough: a list by creation misses an old repository with new files."""
AUTHOR_PAGES, OTHER_PAGES = 20, 3
"""Pages read at the first look; a list that is longer is not known whole."""


@dataclass(frozen=True)
class Watch:
    """A place of the watch list."""

    text: str

    @property
    def kind(self) -> str:
        """author, repo, search or base."""
        return self.text.partition(":")[0]

    @property
    def words(self) -> str:
        """What is watched, without its kind."""
        return self.text.partition(":")[2]

    @property
    def key(self) -> str:
        """Under what the look's state is kept."""
        return f"{NAME}:{self.text}"

    @property
    def params(self) -> dict[str, str]:
        """What the hub is asked for."""
        if self.kind == "base":
            return {"filter": f"base_model:{self.words}"}
        return {self.kind: self.words}

    @property
    def most_pages(self) -> int:
        """How far a first look reads on."""
        return AUTHOR_PAGES if self.kind == "author" else OTHER_PAGES


@dataclass(frozen=True)
class _Read:
    """What one order of a list showed, and whether that was all of it."""

    items: tuple[Listed, ...]
    whole: bool
    odd: int


def look(desk: Desk, watch: Watch) -> Outcome:
    """Ask in both orders; what is new or moved is due for a look of its own.

    The first look tells nothing. A list that could not be read to its end leaves what it did not
    show as it was.
    """
    with reading(desk.database) as session:
        state = source_states.source_state(session, watch.key)
        cursor = dict(state.cursor) if state else {}
        known = hub.known_heads(session, watch.text)
    first = "baseline_at" not in cursor
    read: list[_Read] = []
    for order in ORDERS:
        found = _read(desk, watch, order, known={} if first else known)
        if not isinstance(found, _Read):
            return Outcome(held=found) if isinstance(found, Held) else Outcome(failed=found)
        read.append(found)
    items = {each.hub_id: each for part in reversed(read) for each in part.items}
    now = desk.now()
    with writing(desk.database) as session:
        state = source_states.lock_source_state(session, watch.key, now)
        if first:
            cursor = {"baseline_at": now.isoformat(), "whole": all(part.whole for part in read)}
        _keep(session, watch, items, cursor=cursor, first=first, now=now)
        state.cursor = cursor
    odd = max(part.odd for part in read)
    note = f"{watch.text}: {odd} of the listed have no id or commit and are left out"
    return Outcome(note=note if odd else "")


def _read(desk: Desk, watch: Watch, order: str, *, known: dict[str, str]) -> _Read | Answer | Held:
    """Pages of one order, until one shows nothing that is new."""
    items: list[Listed] = []
    odd = 0
    answer = desk.ask(lambda client: client.models(watch.params, sort_by=order), Tier.WATCHED)
    for _ in range(watch.most_pages):
        if isinstance(answer, Held):
            return answer
        if answer.kind is not Kind.PAGE:
            return _as_doubt(answer)
        listed = [read_listed(item) for item in answer.body]
        page = [each for each in listed if each is not None]
        if answer.body and not page:
            return Answer(Kind.NOT_KNOWN, 200, reason="the list names no ids or no commits")
        items += page
        odd += len(listed) - len(page)
        next_url = answer.next_url
        if next_url is None:
            return _Read(tuple(items), True, odd)
        if known and any(known.get(each.hub_id) == each.sha for each in page):
            return _Read(tuple(items), False, odd)
        answer = desk.ask(lambda client, url=next_url: client.page(url), Tier.WATCHED)  # type: ignore[misc]
    return _Read(tuple(items), False, odd)


def _as_doubt(answer: Answer) -> Answer:
    """A list is never missing: the hub shows an author it does not know as an empty one."""
    return replace(answer, kind=Kind.NOT_KNOWN)


def _keep(
    session: Session,
    watch: Watch,
    items: dict[str, Listed],
    *,
    cursor: dict[str, Any],
    first: bool,
    now: datetime,
) -> None:
    rows = hub.repositories_by_id(session, list(items))
    since = datetime.fromisoformat(cursor["baseline_at"])
    for listed in items.values():
        row = rows.get(listed.hub_id)
        if row is None:
            was_there = listed.created_at is not None and listed.created_at < since
            quiet = first or (was_there and not cursor["whole"])
            row = first_row(listed, quiet=quiet, now=now)
            row.found_late = quiet and not first and (listed.last_modified or since) > since
        elif _differs(row, listed):
            row.look_at = min(row.look_at, now)
        row.head_sha, row.last_seen_at = listed.sha, now
        if watch.text not in row.watches:
            row.watches = [*row.watches, watch.text]
        session.add(row)


def first_row(listed: Listed, *, quiet: bool, now: datetime) -> HubRepositoryRow:
    """A repository seen for the first time; where it is `quiet`, its files are no news."""
    return HubRepositoryRow(
        hub_id=listed.hub_id,
        full_name=listed.full_name,
        head_sha=listed.sha,
        baseline_sha=listed.sha if quiet else "",
        gated=listed.gated,
        private=listed.private,
        disabled=listed.disabled,
        tags=list(listed.tags),
        base_models=list(listed.base_models),
        watches=[],
        created_at=listed.created_at,
        last_modified=listed.last_modified,
        look_at=now,
        first_seen_at=now,
        last_seen_at=now,
    )


def _differs(row: HubRepositoryRow, listed: Listed) -> bool:
    """Whether a closer look is worth it; the date alone is no reason."""
    seen = (row.full_name, row.gated, row.disabled, row.state)
    return row.sha != listed.sha or seen != (
        listed.full_name,
        listed.gated,
        listed.disabled,
        hub.KNOWN,
    )
