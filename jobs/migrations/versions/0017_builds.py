"""Builds: what each one understands, the source it is made of, and who approved strangers' code."""

from __future__ import annotations

import sqlalchemy as sa
import sqlmodel
from alembic import op

from jobs.columns import UtcDateTime

revision = "0017"
down_revision = "0016"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.create_table(
        "build_flags",
        sa.Column("build_id", sa.Integer(), nullable=False),
        sa.Column("options", sa.JSON(), nullable=False),
        sa.ForeignKeyConstraint(["build_id"], ["build.id"]),
        sa.PrimaryKeyConstraint("build_id"),
    )
    op.create_table(
        "approval",
        sa.Column("id", sa.Integer(), nullable=False),
        sa.Column("engine_id", sa.Integer(), nullable=False),
        sa.Column("commit", sqlmodel.AutoString(), nullable=False),
        sa.Column("approved_by", sqlmodel.AutoString(), nullable=False),
        sa.Column("note", sqlmodel.AutoString(), nullable=False),
        sa.Column("approved_at", UtcDateTime(timezone=True), nullable=False),
        sa.Column("expires_at", UtcDateTime(timezone=True), nullable=False),
        sa.Column("withdrawn_at", UtcDateTime(timezone=True), nullable=True),
        sa.Column("withdrawn_by", sqlmodel.AutoString(), nullable=False),
        sa.ForeignKeyConstraint(["engine_id"], ["engine.id"]),
        sa.PrimaryKeyConstraint("id"),
    )
    op.create_index("ix_approval_commit", "approval", ["engine_id", "commit"])
    with op.batch_alter_table("build") as table:
        table.add_column(
            sa.Column("source_tree", sqlmodel.AutoString(), nullable=False, server_default="")
        )
        table.create_index("ix_build_source_tree", ["source_tree"])


def downgrade() -> None:
    with op.batch_alter_table("build") as table:
        table.drop_index("ix_build_source_tree")
        table.drop_column("source_tree")
    op.drop_table("approval")
    op.drop_table("build_flags")
