"""Where repositories stand in their network."""

from __future__ import annotations

import sqlalchemy as sa
import sqlmodel
from alembic import op

from jobs.columns import UtcDateTime

revision = "0004"
down_revision = "0003"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.create_table(
        "standing",
        sa.Column("repository_id", sa.Integer(), nullable=False),
        sa.Column("branch", sqlmodel.AutoString(), nullable=False),
        sa.Column("head", sqlmodel.AutoString(), nullable=False),
        sa.Column("descent", sa.JSON(), nullable=False),
        sa.Column("capability", sa.JSON(), nullable=False),
        sa.Column("git", sa.JSON(), nullable=False),
        sa.Column("worked_out_at", UtcDateTime(timezone=True), nullable=False),
        sa.ForeignKeyConstraint(["repository_id"], ["repository.id"]),
        sa.PrimaryKeyConstraint("repository_id"),
    )


def downgrade() -> None:
    op.drop_table("standing")
