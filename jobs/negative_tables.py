"""Rows of negatives and of what moved under them; storage only, like `jobs.tables`."""

from __future__ import annotations

from datetime import datetime
from typing import Any

from sqlalchemy import Index, UniqueConstraint, text
from sqlmodel import Field, SQLModel

from jobs.columns import json_value, moment

STANDS = "state = 'standing'"


class NegativeRow(SQLModel, table=True):
    """A dated "does not work"; kept whatever becomes of it, one standing per question.

    `asked` is what a retest asks again, `grounds` exactly what the answer depended on.
    `ended_by` says who or what ended it, `overturned_by` is the job whose success did.
    """

    __tablename__ = "negative"
    __table_args__ = (
        Index(
            "ux_negative_standing",
            "question",
            unique=True,
            sqlite_where=text(STANDS),
            postgresql_where=text(STANDS),
        ),
        Index("ix_negative_expires", "state", "expires_at"),
    )
    id: int | None = Field(default=None, primary_key=True)
    question: str = Field(index=True)
    kind: str
    engine_id: int = Field(foreign_key="engine.id", index=True)
    rig: str
    scenario: str = ""
    stack: str = ""
    context_tokens: int = 0
    target_file_id: int | None = Field(default=None, foreign_key="model_file.id")
    drafter_file_id: int | None = Field(default=None, foreign_key="model_file.id")
    projector_file_id: int | None = Field(default=None, foreign_key="model_file.id")
    revision_id: int | None = Field(default=None, foreign_key="revision.id")
    asked: dict[str, Any] = json_value()
    grounds: dict[str, Any] = json_value()
    outcome: str
    failure_class: str
    blame: str = ""
    why: str = ""
    source: str
    identity: str = Field(default="", index=True)
    job_id: int | None = Field(default=None, foreign_key="job.id", index=True)
    preflight: str = ""
    days: float
    created_at: datetime = moment()
    expires_at: datetime = moment()
    follows_id: int | None = Field(default=None, foreign_key="negative.id", index=True)
    state: str = "standing"
    ended_at: datetime | None = moment(default=None)
    ended_by: str = ""
    overturned_by: int | None = Field(default=None, foreign_key="job.id")


class NegativeMoveRow(SQLModel, table=True):
    """Something a negative depended on moved; `job_id` is the retest, `refusal` why there is none.

    The key makes the same move count once.
    """

    __tablename__ = "negative_move"
    __table_args__ = (UniqueConstraint("negative_id", "key"),)
    id: int | None = Field(default=None, primary_key=True)
    negative_id: int = Field(foreign_key="negative.id", index=True)
    key: str
    kind: str
    says: str
    moved_at: datetime = moment()
    event_id: int | None = Field(default=None, foreign_key="event.id")
    job_id: int | None = Field(default=None, foreign_key="job.id", index=True)
    refusal: str = ""
