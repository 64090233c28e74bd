"""Queries on where repositories stand in their network; the caller commits."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from typing import Any

from sqlmodel import Session, select

from jobs.sightings import StandingRow


def standings(session: Session) -> dict[int, StandingRow]:
    """Standings by repository row."""
    return {row.repository_id: row for row in session.exec(select(StandingRow))}


def keep_standing(
    session: Session,
    repository_id: int,
    *,
    branch: str,
    head: str,
    now: datetime,
    descent: Mapping[str, Any] | None = None,
    capability: Mapping[str, Any] | None = None,
    git: Mapping[str, Any] | None = None,
    chain: str | None = None,
) -> StandingRow:
    """The row of a repository, brought up to date; what is not given stays as it was."""
    row = session.get(StandingRow, repository_id)
    if row is None:
        row = StandingRow(repository_id=repository_id, branch=branch, head=head, worked_out_at=now)
    row.branch, row.head, row.worked_out_at = branch, head, now
    for name, value in (("descent", descent), ("capability", capability), ("git", git)):
        if value is not None:
            setattr(row, name, dict(value))
    if chain is not None:
        row.chain = chain
    session.add(row)
    session.flush()
    return row
