"""Rules, budgets, what planning left out, and what runs beside a target."""

from __future__ import annotations

import sqlalchemy as sa
import sqlmodel
from alembic import op

from jobs.columns import UtcDateTime

revision = "0012"
down_revision = "0011"
branch_labels = None
depends_on = None

TEXT = sqlmodel.AutoString


def upgrade() -> None:
    for name in ("drafter", "mmproj"):
        op.add_column("stack", sa.Column(name, TEXT(), nullable=True))
    op.add_column("rig", sa.Column("memory_bytes", sa.BigInteger(), nullable=True))
    with op.batch_alter_table("result") as table:
        for name in ("drafter_file_id", "projector_file_id"):
            table.add_column(sa.Column(name, sa.Integer(), nullable=True))
            table.create_foreign_key(f"fk_result_{name}", "model_file", [name], ["id"])
    op.create_table(
        "rule",
        sa.Column("id", sa.Integer(), primary_key=True),
        sa.Column("name", TEXT(), nullable=False, unique=True),
        sa.Column("place", sa.Integer(), nullable=False),
        sa.Column("asked", TEXT(), nullable=False),
        sa.Column("does", TEXT(), nullable=False),
        sa.Column("only", sa.JSON(), nullable=False),
        sa.Column("lane", TEXT(), nullable=False),
        sa.Column("priority", sa.Integer(), nullable=False),
        sa.Column("created_at", UtcDateTime(), nullable=False),
    )
    op.create_table(
        "budget",
        sa.Column("name", TEXT(), primary_key=True),
        sa.Column("rig", TEXT(), nullable=False),
        sa.Column("source", TEXT(), nullable=False),
        sa.Column("hours_per_day", sa.Float(), nullable=False),
        sa.Column("created_at", UtcDateTime(), nullable=False),
    )
    op.create_table(
        "left_out",
        sa.Column("id", sa.Integer(), primary_key=True),
        sa.Column("event_id", sa.Integer(), sa.ForeignKey("event.id"), nullable=False),
        sa.Column("identity", TEXT(), nullable=False),
        sa.Column("what", TEXT(), nullable=False),
        sa.Column("why", TEXT(), nullable=False),
        sa.Column("detail", TEXT(), nullable=False),
        sa.Column("value", sa.Float(), nullable=True),
        sa.Column("left_at", UtcDateTime(), nullable=False),
        sa.Column("closed_at", UtcDateTime(), nullable=True),
        sa.Column("ending", TEXT(), nullable=False),
        sa.UniqueConstraint("event_id", "identity"),
    )
    op.create_index("ix_left_out_event_id", "left_out", ["event_id"])
    op.create_index("ix_left_out_why", "left_out", ["why"])


def downgrade() -> None:
    for name in ("left_out", "budget", "rule"):
        op.drop_table(name)
    with op.batch_alter_table("result") as table:
        for name in ("drafter_file_id", "projector_file_id"):
            table.drop_column(name)
    op.drop_column("rig", "memory_bytes")
    for name in ("drafter", "mmproj"):
        op.drop_column("stack", name)
