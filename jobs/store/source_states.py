"""Queries on what sources must remember between looks; the caller commits."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime, timedelta

from sqlmodel import Session, col, delete, select

from jobs.sightings import SourceStateRow


def source_state(session: Session, key: str) -> SourceStateRow | None:
    """What is remembered under `key`."""
    return session.get(SourceStateRow, key)


def source_states(session: Session, prefix: str) -> dict[str, SourceStateRow]:
    """All that is remembered under keys that begin with `prefix`."""
    query = select(SourceStateRow).where(
        col(SourceStateRow.key).startswith(prefix, autoescape=True)
    )
    return {row.key: row for row in session.exec(query)}


def lock_source_state(session: Session, key: str, now: datetime) -> SourceStateRow:
    """The row under `key`, made if there is none, held until the transaction ends."""
    query = select(SourceStateRow).where(SourceStateRow.key == key).with_for_update()
    row = session.exec(query).first()
    if row is None:
        row = session.merge(SourceStateRow(key=key, updated_at=now))
        session.flush()
    row.updated_at = now
    session.add(row)
    return row


def forget_source_states(
    session: Session, prefix: str, *, now: datetime, older_than: timedelta
) -> None:
    """Drop what nobody touched for that long, so that the table stays small."""
    before: Sequence[str] = list(
        session.exec(
            select(SourceStateRow.key).where(
                col(SourceStateRow.key).startswith(prefix, autoescape=True),
                col(SourceStateRow.updated_at) < now - older_than,
            )
        )
    )
    session.exec(delete(SourceStateRow).where(col(SourceStateRow.key).in_(before)))


def forget_source_state(session: Session, key: str) -> None:
    """Drop what is remembered under `key`."""
    session.exec(delete(SourceStateRow).where(col(SourceStateRow.key) == key))
