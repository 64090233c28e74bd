"""Negatives: dated "does not work", and what moved under them."""

from __future__ import annotations

import sqlalchemy as sa
import sqlmodel
from alembic import op

from jobs.columns import UtcDateTime

revision = "0015"
down_revision = "0014"
branch_labels = None
depends_on = None

STANDS = sa.text("state = 'standing'")


def upgrade() -> None:
    op.create_table(
        "negative",
        sa.Column("id", sa.Integer(), nullable=False),
        sa.Column("question", sqlmodel.AutoString(), nullable=False),
        sa.Column("kind", sqlmodel.AutoString(), nullable=False),
        sa.Column("engine_id", sa.Integer(), nullable=False),
        sa.Column("rig", sqlmodel.AutoString(), nullable=False),
        sa.Column("scenario", sqlmodel.AutoString(), nullable=False),
        sa.Column("stack", sqlmodel.AutoString(), nullable=False),
        sa.Column("context_tokens", sa.Integer(), nullable=False),
        sa.Column("target_file_id", sa.Integer(), nullable=True),
        sa.Column("drafter_file_id", sa.Integer(), nullable=True),
        sa.Column("projector_file_id", sa.Integer(), nullable=True),
        sa.Column("revision_id", sa.Integer(), nullable=True),
        sa.Column("asked", sa.JSON(), nullable=False),
        sa.Column("grounds", sa.JSON(), nullable=False),
        sa.Column("outcome", sqlmodel.AutoString(), nullable=False),
        sa.Column("failure_class", sqlmodel.AutoString(), nullable=False),
        sa.Column("blame", sqlmodel.AutoString(), nullable=False),
        sa.Column("why", sqlmodel.AutoString(), nullable=False),
        sa.Column("source", sqlmodel.AutoString(), nullable=False),
        sa.Column("identity", sqlmodel.AutoString(), nullable=False),
        sa.Column("job_id", sa.Integer(), nullable=True),
        sa.Column("preflight", sqlmodel.AutoString(), nullable=False),
        sa.Column("days", sa.Float(), nullable=False),
        sa.Column("created_at", UtcDateTime(timezone=True), nullable=False),
        sa.Column("expires_at", UtcDateTime(timezone=True), nullable=False),
        sa.Column("follows_id", sa.Integer(), nullable=True),
        sa.Column("state", sqlmodel.AutoString(), nullable=False),
        sa.Column("ended_at", UtcDateTime(timezone=True), nullable=True),
        sa.Column("ended_by", sqlmodel.AutoString(), nullable=False),
        sa.Column("overturned_by", sa.Integer(), nullable=True),
        sa.ForeignKeyConstraint(["engine_id"], ["engine.id"]),
        sa.ForeignKeyConstraint(["target_file_id"], ["model_file.id"]),
        sa.ForeignKeyConstraint(["drafter_file_id"], ["model_file.id"]),
        sa.ForeignKeyConstraint(["projector_file_id"], ["model_file.id"]),
        sa.ForeignKeyConstraint(["revision_id"], ["revision.id"]),
        sa.ForeignKeyConstraint(["job_id"], ["job.id"]),
        sa.ForeignKeyConstraint(["overturned_by"], ["job.id"]),
        sa.ForeignKeyConstraint(["follows_id"], ["negative.id"]),
        sa.PrimaryKeyConstraint("id"),
    )
    op.create_index(
        "ux_negative_standing",
        "negative",
        ["question"],
        unique=True,
        sqlite_where=STANDS,
        postgresql_where=STANDS,
    )
    op.create_index("ix_negative_expires", "negative", ["state", "expires_at"])
    for name in ("question", "engine_id", "identity", "job_id", "follows_id"):
        op.create_index(f"ix_negative_{name}", "negative", [name])
    op.create_table(
        "negative_move",
        sa.Column("id", sa.Integer(), nullable=False),
        sa.Column("negative_id", sa.Integer(), nullable=False),
        sa.Column("key", sqlmodel.AutoString(), nullable=False),
        sa.Column("kind", sqlmodel.AutoString(), nullable=False),
        sa.Column("says", sqlmodel.AutoString(), nullable=False),
        sa.Column("moved_at", UtcDateTime(timezone=True), nullable=False),
        sa.Column("event_id", sa.Integer(), nullable=True),
        sa.Column("job_id", sa.Integer(), nullable=True),
        sa.Column("refusal", sqlmodel.AutoString(), nullable=False),
        sa.ForeignKeyConstraint(["negative_id"], ["negative.id"]),
        sa.ForeignKeyConstraint(["event_id"], ["event.id"]),
        sa.ForeignKeyConstraint(["job_id"], ["job.id"]),
        sa.PrimaryKeyConstraint("id"),
        sa.UniqueConstraint("negative_id", "key"),
    )
    for name in ("negative_id", "job_id"):
        op.create_index(f"ix_negative_move_{name}", "negative_move", [name])


def downgrade() -> None:
    op.drop_table("negative_move")
    op.drop_table("negative")
