"""Dates of commits are strangers' words: they order no revision by themselves."""

from __future__ import annotations

from datetime import timedelta
from itertools import pairwise
from pathlib import Path

import pytest
from sqlalchemy import Engine
from support.hub import Hub
from support.watching import NOON, Scout, engine

from jobs.db import reading
from jobs.store import catalog, overview, results
from jobs.tables import ResultRow

pytestmark = pytest.mark.needs("git")
FUTURE, PAST = 2**33 - 5, 0


def test_a_push_stands_after_what_was_seen_before(hub: Hub, sqlite: Engine, tmp_path: Path) -> None:
    """From 2242 or 1970, each head is the newest of its day and is measured against the last."""
    fork = hub.add("a/fork")
    at = int((NOON - timedelta(days=30)).timestamp())
    fork.commit({"a": "0"}, at=at)
    fork.push()
    scout = Scout(sqlite, tmp_path)
    scout.load(engine("fork", "a/fork", "main"))
    scout.look()
    heads = []
    for n, date in enumerate((at + 100, FUTURE, at + 300, PAST, at + 500)):
        heads.append(fork.commit({"a": f"x{n}"}, at=date))
        fork.push()
        scout.look()
        with reading(sqlite) as session:
            (shown,) = overview.revisions(session).values()
        assert [row.commit for row in shown] == heads[::-1]
    with reading(sqlite) as session:
        rows = catalog.revisions_of(session, 1)
        for before, after in pairwise(rows):
            history = [ResultRow(id=row.id, revision_id=row.id) for row in rows if row is not after]
            history = [each for each in history if each.id <= before.id]
            assert results.baseline_for(session, after, history).revision_id == before.id
    assert all(
        event.happened_at <= event.seen_at for event in scout.events().values() if event.happened_at
    )
