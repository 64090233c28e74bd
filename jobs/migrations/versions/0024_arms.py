"""Results that were measured in turns, each with its arm."""

from __future__ import annotations

import sqlalchemy as sa
import sqlmodel
from alembic import op

revision = "0024"
down_revision = "0023"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.create_table(
        "arm",
        sa.Column("result_id", sa.Integer(), nullable=False),
        sa.Column("turns", sqlmodel.AutoString(), nullable=False),
        sa.Column("question", sqlmodel.AutoString(), nullable=False),
        sa.Column("arm", sqlmodel.AutoString(), nullable=False),
        sa.ForeignKeyConstraint(["result_id"], ["result.id"]),
        sa.PrimaryKeyConstraint("result_id"),
        sa.UniqueConstraint("turns", "question", "arm"),
    )
    op.create_index("ix_arm_turns", "arm", ["turns", "question"])


def downgrade() -> None:
    op.drop_table("arm")
