"""Rows beside a build: what it understands, who approved its source; storage only."""

from __future__ import annotations

from datetime import datetime
from typing import Any

from sqlalchemy import Index
from sqlmodel import Field, SQLModel

from jobs.columns import json_value, moment


class BuildFlagsRow(SQLModel, table=True):
    """The options that a finished build's own help names; fields as in `dialect.options.Option`."""

    __tablename__ = "build_flags"
    build_id: int = Field(foreign_key="build.id", primary_key=True)
    options: list[dict[str, Any]] = json_value(list)


class ApprovalRow(SQLModel, table=True):
    """A person's word that one commit of one engine may be built, until when, and who took it back.

    Rows are never rewritten but for their withdrawal; a new word is a new row.
    """

    __tablename__ = "approval"
    __table_args__ = (Index("ix_approval_commit", "engine_id", "commit"),)
    id: int | None = Field(default=None, primary_key=True)
    engine_id: int = Field(foreign_key="engine.id")
    commit: str
    approved_by: str
    note: str = ""
    approved_at: datetime = moment()
    expires_at: datetime = moment()
    withdrawn_at: datetime | None = moment(default=None)
    withdrawn_by: str = ""
