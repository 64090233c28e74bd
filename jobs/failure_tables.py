"""Rows about what failed and how it ended; storage only, like `jobs.tables`."""

from __future__ import annotations

from datetime import datetime

from sqlalchemy import UniqueConstraint
from sqlmodel import Field, SQLModel

from jobs.columns import json_value, moment


class FailureRow(SQLModel, table=True):
    """One attempt that failed: class, phase, how its process ended, the last lines of its log.

    `unknown` ones were named by no rule of the family; a person reads them until `reviewed`.
    """

    __tablename__ = "failure"
    __table_args__ = (UniqueConstraint("job_id", "fence"),)
    id: int | None = Field(default=None, primary_key=True)
    job_id: int = Field(foreign_key="job.id")
    fence: int
    failure_class: str
    blame: str
    phase: str = ""
    ending: str = ""
    message: str = ""
    advice: str = ""
    lines: list[str] = json_value(list)
    unknown: bool = Field(default=False, index=True)
    reviewed: bool = False
    created_at: datetime = moment()
