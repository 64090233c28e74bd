"""Keeps what the ranking knows of watched engines' repositories; quiet while no head moves."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import asdict
from datetime import datetime

import structlog
from sqlalchemy import Engine

from jobs.db import reading, writing
from jobs.errors import ScoutError
from jobs.git import repo_url
from jobs.store import standings
from scout.history import History
from scout.kinship import Kin, kindred, root_of, with_heads
from scout.yardsticks import Yardstick, facts_of, yardstick

_log = structlog.get_logger(__name__)


def keep_engine_facts(
    database: Engine, *, history: History, now: Callable[[], datetime]
) -> tuple[str, ...]:
    """Work out the facts of every engine whose head, parent or upstream moved; what went wrong."""
    with reading(database) as session:
        kept = {key: row.git.get("drawn_from") for key, row in standings.standings(session).items()}
        moved = _moved(with_heads(session), kept)
        kin = kindred(session) if moved else {}
    problems: list[str] = []
    for root, names in moved.items():
        try:
            yard = yardstick(history, kin, root)
        except ScoutError as error:
            problems.append(f"{root}: {error.message}")
            continue
        for one in (kin[name] for name in names):
            try:
                _keep(database, history, one, _drawn_from(one, root, kin), yard, kin, now())
            except ScoutError as error:
                problems.append(f"{one.name}: {error.message}")
            except Exception as error:
                _log.exception("facts not worked out", engine=one.name)
                problems.append(f"{one.name}: our own fault: {error!r}")
    return tuple(problems)


def _moved(kin: Mapping[str, Kin], kept: Mapping[int, str | None]) -> dict[str, list[str]]:
    """By root the engines whose facts are of another head, parent or upstream than today's."""
    found: dict[str, list[str]] = {}
    for name, one in kin.items():
        root = root_of(name, kin)
        if name == root or one.head is None or kin[root].head is None:
            continue
        if kept.get(one.repository) != _drawn_from(one, root, kin):
            found.setdefault(root, []).append(name)
    return found


def _keep(
    database: Engine,
    history: History,
    one: Kin,
    drawn_from: str,
    yard: Yardstick,
    kin: Mapping[str, Kin],
    now: datetime,
) -> None:
    parent = kin.get(one.parent or "")
    facts = facts_of(
        yard,
        history,
        one.refs,
        default_branch=one.branch,
        parentage=yard.parentage(
            parent.repository if parent else None, named=one.parent or "", by_commits=False
        ),
        url=repo_url(one.repo),
    )
    if facts is None:
        return
    stored = {**asdict(facts), "looked_at": now.isoformat(), "drawn_from": drawn_from}
    with writing(database) as session:
        standings.keep_standing(
            session,
            one.repository,
            branch=one.branch or facts.branch,
            head=one.head or facts.head,
            now=now,
            git=stored,
        )


def _drawn_from(one: Kin, root: str, kin: Mapping[str, Kin]) -> str:
    parent = kin.get(one.parent or "")
    return f"{one.head} {kin[root].head} {parent.head if parent else None}"
