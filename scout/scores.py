"""Keeps the score of every fork that is worth a look, so that pages can show it; asks nobody."""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime

from sqlalchemy import Engine

from jobs.db import reading, writing
from jobs.sightings import RepositoryRow
from jobs.store import forks
from scout.github.governor import Tier
from scout.ranked_forks import ranked_forks


def keep_scores(database: Engine, *, now: Callable[[], datetime]) -> int:
    """Score candidates, watched forks and engines anew; how many scores are others now."""
    with reading(database) as session:
        rows = forks.repositories(session, closest_tier=Tier.CANDIDATE)
        stored = {
            row.id: {
                "score": each.rank.score,
                "reasons": list(each.rank.reasons),
                "shut_out": each.rank.shut_out,
            }
            for row, each in zip(rows, ranked_forks(session, rows, now=now()), strict=True)
            if row.parent_github_id is not None or each.is_copy
        }
        moved = {row.id for row in rows if row.id in stored and _kept(row) != stored[row.id]}
    with writing(database) as session:
        for number in sorted(filter(None, moved)):
            row = session.get_one(RepositoryRow, number)
            kept = {**stored[number], "worked_out_at": now().isoformat()}
            row.facts = {**row.facts, forks.SCORE: kept}
            session.add(row)
    return len(moved)


def _kept(row: RepositoryRow) -> dict[str, object]:
    kept = row.facts.get(forks.SCORE) or {}
    return {key: value for key, value in kept.items() if key != "worked_out_at"}
