"""Keeps where known repositories are named: descriptions, titles, READMEs of watched heads."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterable, Mapping
from datetime import datetime, timedelta

from sqlalchemy import Engine
from sqlmodel import Session

from jobs.db import reading, writing
from jobs.errors import ScoutError
from jobs.git import repo_url
from jobs.store import catalog, forks, source_states
from scout.history import History
from scout.kinship import Kin, with_heads
from scout.mentions import named

KEY = "mentions"
README = "README.md"
PACE = timedelta(hours=6)
PLACES = 12
"""Places kept for one repository; the score counts fewer."""
REPOSITORIES = 1_000
TITLES = 1_000
_TITLED = ("pr_", "issue_")


def keep_mentions(
    database: Engine, *, history: History, now: Callable[[], datetime]
) -> tuple[str, ...]:
    """Read anew who names whom, where a watched head moved or some hours passed; what failed."""
    with reading(database) as session:
        kin = with_heads(session)
        heads = "\n".join(sorted(f"{one.name} {one.head}" for one in kin.values()))
        drawn_from = hashlib.sha256(heads.encode()).hexdigest()
        kept = source_states.source_state(session, KEY)
        fresh = kept is not None and now() - kept.updated_at < PACE
        if kept is not None and fresh and kept.cursor.get("drawn_from") == drawn_from:
            return ()
        texts = list(_texts(session))
        known = {row.full_name.lower() for row in forks.repositories(session)}
    problems: list[str] = []
    for one in kin.values():
        try:
            texts.append((f"README of {one.repo}", one.repo, _readme(history, one)))
        except ScoutError as error:
            problems.append(f"README of {one.repo}: {error.message}")
    found = _gather(texts, known)
    with writing(database) as session:
        state = source_states.lock_source_state(session, KEY, now())
        state.cursor = {"drawn_from": drawn_from, "by": found}
    return tuple(problems)


def read_mentions(session: Session) -> Mapping[str, list[str]]:
    """The places that name a repository, by its name in small letters."""
    state = source_states.source_state(session, KEY)
    return dict(state.cursor.get("by", {})) if state else {}


def _texts(session: Session) -> Iterable[tuple[str, str, str]]:
    """Where it stands, whose it is, and the text."""
    for row in forks.repositories(session):
        if "/" in row.description:
            yield f"description of {row.full_name}", row.full_name, row.description
    for event in catalog.events(session, limit=TITLES):
        if event.kind.startswith(_TITLED):
            own = str(event.payload.get("full_name", ""))
            title = f"{event.title}\n{event.payload.get('title', '')}"
            yield f"{own}#{event.payload.get('number', '?')}", own, title


def _readme(history: History, one: Kin) -> str:
    if one.head is None or not history.file_ids([(one.head, README)]):
        return ""
    texts = history.read_files(repo_url(one.repo), [(one.head, README)])
    return texts.get((one.head, README), "")


def _gather(texts: Iterable[tuple[str, str, str]], known: set[str]) -> dict[str, list[str]]:
    found: dict[str, list[str]] = {}
    for place, own, text in texts:
        for name in sorted(named(text) & known - {own.lower()}):
            places = found.setdefault(name, []) if len(found) < REPOSITORIES else found.get(name)
            if places is not None and place not in places and len(places) < PLACES:
                places.append(place)
    return found
