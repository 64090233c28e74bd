"""Asks who answers under a name that a watched repository had; a name can pass to a stranger."""

from __future__ import annotations

from jobs.db import writing
from jobs.store import forks
from jobs.store.origins import TAKEN_BY
from scout.github.answers import Answer, Kind
from scout.github.base import Happening, Repo, record
from scout.github.desk import Desk, Page
from scout.github.governor import Tier
from scout.github.texts import identity


def check_names(desk: Desk, github_id: int, listed: str, *, source: str) -> tuple[Happening, ...]:
    """Look up the watch list's name after a rename, and any name whose number shows nothing.

    What cannot be asked now stays as it was known.
    """
    with writing(desk.database) as session:
        row = forks.repository(session, github_id)
        if row is None:
            return ()
        names = {listed.lower(): listed} if listed.lower() != row.full_name.lower() else {}
        if row.misses or row.state == forks.GONE:
            names[row.full_name.lower()] = row.full_name
        taken = dict(row.facts.get(TAKEN_BY) or {})
        stale = taken.keys() - names.keys()
        if stale:
            row.facts = {**row.facts, TAKEN_BY: {k: v for k, v in taken.items() if k in names}}
            session.add(row)
    new: tuple[Happening, ...] = ()
    for name in names.values():
        page = Page(f"repos/{name}", many=False)
        answer = desk.ask(page, Tier.CHAIN)
        if isinstance(answer, Answer) and answer.kind in (Kind.PAGE, Kind.MISSING):
            new += _note(desk, github_id, name, page, answer, source)
    return new


def _note(
    desk: Desk, github_id: int, name: str, page: Page, answer: Answer, source: str
) -> tuple[Happening, ...]:
    other = identity(answer.items[0].get("id")) if answer.items else None
    with writing(desk.database) as session:
        row = forks.repository(session, github_id)
        if row is None:
            return ()
        taken = {k: v for k, v in (row.facts.get(TAKEN_BY) or {}).items() if k != name.lower()}
        if other not in (None, github_id):
            taken[name.lower()] = other
        row.facts = {**row.facts, TAKEN_BY: taken}
        session.add(row)
        desk.remember(session, page, answer)
        if name.lower() not in taken:
            return ()
        return record(
            session,
            [_taken(github_id, name, other or 0, now_called=row.full_name)],
            source=source,
            repo=Repo.of(row),
            now=desk.now(),
        )


def _taken(github_id: int, name: str, other: int, *, now_called: str) -> Happening:
    instead = "its own repository shows nothing" if now_called == name else now_called
    return Happening(
        "repo_name_taken",
        f"gh:repo:{github_id}:name_taken:{name}:{other}",
        f"{name} belongs to another repository now ({other}, was {github_id}: {instead}); "
        "nothing of it is built",
        {"change": "name_taken", "name": name, "taken_by": other},
    )
