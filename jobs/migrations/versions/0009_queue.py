"""Who asked for a job and why, where it stands in its lane, what it will cost."""

from __future__ import annotations

import sqlalchemy as sa
import sqlmodel
from alembic import op

from jobs.columns import UtcDateTime

revision = "0009"
down_revision = "0008"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.add_column(
        "job", sa.Column("source", sqlmodel.AutoString(), nullable=False, server_default="")
    )
    op.add_column("job", sa.Column("cause", sa.JSON(), nullable=False, server_default="{}"))
    op.add_column("job", sa.Column("estimate_seconds", sa.Float(), nullable=True))
    op.add_column("job", sa.Column("turn_at", UtcDateTime(), nullable=True))
    op.add_column("job", sa.Column("expires_at", UtcDateTime(), nullable=True))
    op.execute("UPDATE job SET turn_at = created_at")
    with op.batch_alter_table("job") as table:
        table.alter_column("turn_at", nullable=False)


def downgrade() -> None:
    for name in ("expires_at", "turn_at", "estimate_seconds", "cause", "source"):
        op.drop_column("job", name)
