"""Rows of a line of jobs: attempts that ended, time that sources used, pauses; storage only."""

from __future__ import annotations

from datetime import datetime

from sqlmodel import Field, SQLModel

from jobs.columns import moment


class AttemptRow(SQLModel, table=True):
    """One lease of a job that is over: who held it, for how long, and what came of it."""

    __tablename__ = "attempt"
    job_id: int = Field(foreign_key="job.id", primary_key=True)
    fence: int = Field(primary_key=True)
    number: int
    worker: str
    started_at: datetime = moment()
    ended_at: datetime = moment()
    outcome: str
    failure_class: str | None = None
    message: str = ""


class UseRow(SQLModel, table=True):
    """What the attempts of one source that ended within one hour took of a queue."""

    __tablename__ = "queue_use"
    queue: str = Field(primary_key=True)
    hour: datetime = moment(primary_key=True)
    source: str = Field(primary_key=True)
    seconds: float = 0.0


class PauseRow(SQLModel, table=True):
    """A queue of which nothing is leased; an empty `until` lasts until somebody resumes it."""

    __tablename__ = "pause"
    queue: str = Field(primary_key=True)
    reason: str = ""
    since: datetime = moment()
    until: datetime | None = moment(default=None)
