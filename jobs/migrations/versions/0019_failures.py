"""How failures ended, times and soundness of each sample's text, scenarios of a watch list."""

from __future__ import annotations

import sqlalchemy as sa
import sqlmodel
from alembic import op

from jobs.columns import UtcDateTime

revision = "0019"
down_revision = "0017"
branch_labels = None
depends_on = None

SAMPLE = ("inter_token_p50_ms", "inter_token_p99_ms", "sanity")


def upgrade() -> None:
    for name in SAMPLE:
        op.add_column("sample", sa.Column(name, sa.Float(), nullable=True))
    op.add_column(
        "stack", sa.Column("own_scenarios", sa.JSON(), nullable=False, server_default="{}")
    )
    op.create_table(
        "failure",
        sa.Column("id", sa.Integer(), nullable=False),
        sa.Column("job_id", sa.Integer(), nullable=False),
        sa.Column("fence", sa.Integer(), nullable=False),
        sa.Column("failure_class", sqlmodel.AutoString(), nullable=False),
        sa.Column("blame", sqlmodel.AutoString(), nullable=False),
        sa.Column("phase", sqlmodel.AutoString(), nullable=False),
        sa.Column("ending", sqlmodel.AutoString(), nullable=False),
        sa.Column("message", sqlmodel.AutoString(), nullable=False),
        sa.Column("advice", sqlmodel.AutoString(), nullable=False),
        sa.Column("lines", sa.JSON(), nullable=False),
        sa.Column("unknown", sa.Boolean(), nullable=False),
        sa.Column("reviewed", sa.Boolean(), nullable=False),
        sa.Column("created_at", UtcDateTime(timezone=True), nullable=False),
        sa.ForeignKeyConstraint(["job_id"], ["job.id"]),
        sa.PrimaryKeyConstraint("id"),
        sa.UniqueConstraint("job_id", "fence"),
    )
    op.create_index("ix_failure_unknown", "failure", ["unknown"])


def downgrade() -> None:
    op.drop_table("failure")
    op.drop_column("stack", "own_scenarios")
    for name in SAMPLE:
        op.drop_column("sample", name)
