"""Rows of builds that were booted in turns; storage only."""

from __future__ import annotations

from sqlalchemy import Index, UniqueConstraint
from sqlmodel import Field, SQLModel


class ArmRow(SQLModel, table=True):
    """One of two results that were measured in turns, A, B, A, B; their boots pair by number.

    `turns` names the sitting, `question` digests what both were asked in it: a file may hold
    several. A is the candidate, B its baseline.
    """

    __tablename__ = "arm"
    __table_args__ = (
        UniqueConstraint("turns", "question", "arm"),
        Index("ix_arm_turns", "turns", "question"),
    )
    result_id: int = Field(foreign_key="result.id", primary_key=True)
    turns: str
    question: str
    arm: str
