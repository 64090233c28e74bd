"""Rows of planning: rules, budgets, and what was left out; storage only."""

from __future__ import annotations

from datetime import datetime
from typing import Any

from sqlalchemy import Index, UniqueConstraint, text
from sqlmodel import Field, SQLModel

from jobs.columns import json_value, moment

OPEN = "closed_at IS NULL"


class RuleRow(SQLModel, table=True):
    """What a watch list says is done about a kind of event; the lower `place` is asked first."""

    __tablename__ = "rule"
    id: int | None = Field(default=None, primary_key=True)
    name: str = Field(unique=True)
    place: int
    asked: str
    does: str
    only: dict[str, Any] = json_value()
    lane: str = ""
    priority: int = 0
    created_at: datetime = moment()


class BudgetRow(SQLModel, table=True):
    """Hours a day that planning may use of a rig, or for a source; the name says which."""

    __tablename__ = "budget"
    name: str = Field(primary_key=True)
    rig: str = ""
    source: str = ""
    hours_per_day: float
    created_at: datetime = moment()


class LeftOutRow(SQLModel, table=True):
    """What planning did not queue for an event, and why; `closed_at` once that is settled."""

    __tablename__ = "left_out"
    __table_args__ = (
        UniqueConstraint("event_id", "identity"),
        Index(
            "ix_left_out_open",
            "why",
            "left_at",
            sqlite_where=text(OPEN),
            postgresql_where=text(OPEN),
        ),
    )
    id: int | None = Field(default=None, primary_key=True)
    event_id: int = Field(foreign_key="event.id", index=True)
    identity: str
    what: str
    why: str = Field(index=True)
    detail: str = ""
    value: float | None = None
    left_at: datetime = moment()
    closed_at: datetime | None = moment(default=None)
    ending: str = ""
