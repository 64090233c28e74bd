"""Rows about rigs, their health and where their weights lie; storage only, like `jobs.tables`."""

from __future__ import annotations

from datetime import datetime
from typing import Any

from sqlmodel import Field, SQLModel

from jobs.columns import json_value, moment


class RigHealthRow(SQLModel, table=True):
    """Where a rig stands, by its name; fields as in `health.Health`. `job_id` is the last asked."""

    __tablename__ = "rig_health"
    rig: str = Field(primary_key=True)
    state: str
    why: str = ""
    by_hand: bool = False
    since: datetime = moment()
    good: int = 0
    bad: int = 0
    last_run_at: datetime | None = moment(default=None)
    last_good_at: datetime | None = moment(default=None)
    environment: dict[str, Any] = json_value()
    run_wanted: str = ""
    job_id: int | None = Field(default=None, foreign_key="job.id")


class GoldenRow(SQLModel, table=True):
    """A known build with its known result on one rig; one of a rig is not retired.

    `payload` is empty until the revision that a watch list names is known. `low` and `high` are
    what the list asks for; `speeds` are boots of the present environment, oldest first.
    """

    __tablename__ = "golden"
    id: int | None = Field(default=None, primary_key=True)
    rig: str = Field(index=True)
    origin: str
    stack: str
    revision: str
    payload: dict[str, Any] = json_value()
    low: float | None = None
    high: float | None = None
    text_sha256: str = ""
    speeds: list[float] = json_value(list)
    fault: str = ""
    created_at: datetime = moment()
    retired_at: datetime | None = moment(default=None)


class HealthRunRow(SQLModel, table=True):
    """One run of a golden and what it said; `low` and `high` are the band it was held against."""

    __tablename__ = "health_run"
    id: int | None = Field(default=None, primary_key=True)
    golden_id: int = Field(foreign_key="golden.id", index=True)
    rig: str = Field(index=True)
    job_id: int | None = Field(default=None, foreign_key="job.id", unique=True)
    outcome: str
    why: str
    decode_tps: float | None = None
    low: float | None = None
    high: float | None = None
    text_sha256: str = ""
    environment: dict[str, Any] = json_value()
    created_at: datetime = moment()


class WorkerStoreRow(SQLModel, table=True):
    """Which weights store a worker looked into when it started last; it outlives the worker."""

    __tablename__ = "worker_store"
    worker: str = Field(primary_key=True)
    queue: str = Field(index=True)
    store: str
    since: datetime = moment()
