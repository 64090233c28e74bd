"""Indexes that keep a long line cheap, pauses, ageing, and what jobs took of their queue."""

from __future__ import annotations

import sqlalchemy as sa
import sqlmodel
from alembic import op

from jobs.columns import UtcDateTime

revision = "0011"
down_revision = "0010"
branch_labels = None
depends_on = None

IN_LINE = "state = 'queued' AND NOT put_off"
PARTIAL = {
    "ix_job_line": (IN_LINE, ("queue", "lane", "turn_at", "id", "due_at", "estimate_seconds")),
    "ix_job_source": (IN_LINE, ("queue", "lane", "source", "turn_at", "id")),
    "ix_job_put_off": ("state = 'queued' AND put_off", ("queue", "due_at")),
    "ix_job_held": ("state in ('leased', 'running')", ("beat_at",)),
    "ix_job_blocked": ("state = 'blocked'", ("blocked_by", "queue")),
    "ix_job_ages": ("state = 'queued' AND ages_at IS NOT NULL", ("ages_at",)),
    "ix_job_expires": (
        "state in ('queued', 'blocked') AND expires_at IS NOT NULL",
        ("expires_at",),
    ),
    "ix_job_broken": ("state in ('failed', 'dead')", ("finished_at", "id")),
    "ix_job_ended": ("finished_at IS NOT NULL", ("finished_at", "id")),
    "ix_job_past": ("finished_at IS NOT NULL", ("queue", "finished_at")),
}


def upgrade() -> None:
    op.add_column(
        "job", sa.Column("put_off", sa.Boolean(), nullable=False, server_default=sa.false())
    )
    op.add_column("job", sa.Column("ages_at", UtcDateTime(), nullable=True))
    op.add_column(
        "job_need", sa.Column("settled", sa.Boolean(), nullable=False, server_default=sa.false())
    )
    op.create_table(
        "pause",
        sa.Column("queue", sqlmodel.AutoString(), primary_key=True),
        sa.Column("reason", sqlmodel.AutoString(), nullable=False),
        sa.Column("since", UtcDateTime(), nullable=False),
        sa.Column("until", UtcDateTime(), nullable=True),
    )
    op.create_table(
        "attempt",
        sa.Column("job_id", sa.Integer(), sa.ForeignKey("job.id"), primary_key=True),
        sa.Column("fence", sa.Integer(), primary_key=True),
        sa.Column("number", sa.Integer(), nullable=False),
        sa.Column("worker", sqlmodel.AutoString(), nullable=False),
        sa.Column("started_at", UtcDateTime(), nullable=False),
        sa.Column("ended_at", UtcDateTime(), nullable=False),
        sa.Column("outcome", sqlmodel.AutoString(), nullable=False),
        sa.Column("failure_class", sqlmodel.AutoString(), nullable=True),
        sa.Column("message", sqlmodel.AutoString(), nullable=False),
    )
    op.create_table(
        "queue_use",
        sa.Column("queue", sqlmodel.AutoString(), primary_key=True),
        sa.Column("hour", UtcDateTime(), primary_key=True),
        sa.Column("source", sqlmodel.AutoString(), primary_key=True),
        sa.Column("seconds", sa.Float(), nullable=False),
    )
    op.create_index("ix_job_identity", "job", ["identity"])
    op.drop_index("ix_job_due", "job")
    op.drop_index("ix_job_kind", "job")
    for name, (condition, columns) in PARTIAL.items():
        where = sa.text(condition)
        op.create_index(name, "job", list(columns), sqlite_where=where, postgresql_where=where)


def downgrade() -> None:
    for name in PARTIAL:
        op.drop_index(name, "job")
    op.create_index("ix_job_kind", "job", ["kind"])
    op.create_index("ix_job_due", "job", ["queue", "state", "lane", "due_at"])
    op.drop_index("ix_job_identity", "job")
    op.drop_table("queue_use")
    op.drop_table("attempt")
    op.drop_table("pause")
    op.drop_column("job_need", "settled")
    for name in ("ages_at", "put_off"):
        op.drop_column("job", name)
