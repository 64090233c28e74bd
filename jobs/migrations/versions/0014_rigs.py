"""Goldens, their runs, the health of rigs, doubtful results, and what holds a worker back."""

from __future__ import annotations

import sqlalchemy as sa
import sqlmodel
from alembic import op

from jobs.columns import UtcDateTime

revision = "0014"
down_revision = "0013"
branch_labels = None
depends_on = None

TEXT = sqlmodel.AutoString
ADDED = (("worker", "trouble"), ("worker", "advice"), ("result", "doubt"))


def upgrade() -> None:
    for table, name in ADDED:
        op.add_column(table, sa.Column(name, TEXT(), nullable=False, server_default=""))
    op.add_column("worker", sa.Column("heard_at", UtcDateTime(), nullable=True))
    op.create_table(
        "rig_health",
        sa.Column("rig", TEXT(), primary_key=True),
        sa.Column("state", TEXT(), nullable=False),
        sa.Column("why", TEXT(), nullable=False),
        sa.Column("by_hand", sa.Boolean(), nullable=False),
        sa.Column("since", UtcDateTime(), nullable=False),
        sa.Column("good", sa.Integer(), nullable=False),
        sa.Column("bad", sa.Integer(), nullable=False),
        sa.Column("last_run_at", UtcDateTime(), nullable=True),
        sa.Column("last_good_at", UtcDateTime(), nullable=True),
        sa.Column("environment", sa.JSON(), nullable=False),
        sa.Column("run_wanted", TEXT(), nullable=False),
        sa.Column("job_id", sa.Integer(), sa.ForeignKey("job.id"), nullable=True),
    )
    op.create_table(
        "golden",
        sa.Column("id", sa.Integer(), primary_key=True),
        sa.Column("rig", TEXT(), nullable=False, index=True),
        sa.Column("origin", TEXT(), nullable=False),
        sa.Column("stack", TEXT(), nullable=False),
        sa.Column("revision", TEXT(), nullable=False),
        sa.Column("payload", sa.JSON(), nullable=False),
        sa.Column("low", sa.Float(), nullable=True),
        sa.Column("high", sa.Float(), nullable=True),
        sa.Column("text_sha256", TEXT(), nullable=False),
        sa.Column("speeds", sa.JSON(), nullable=False),
        sa.Column("fault", TEXT(), nullable=False),
        sa.Column("created_at", UtcDateTime(), nullable=False),
        sa.Column("retired_at", UtcDateTime(), nullable=True),
    )
    op.create_table(
        "health_run",
        sa.Column("id", sa.Integer(), primary_key=True),
        sa.Column(
            "golden_id", sa.Integer(), sa.ForeignKey("golden.id"), nullable=False, index=True
        ),
        sa.Column("rig", TEXT(), nullable=False, index=True),
        sa.Column("job_id", sa.Integer(), sa.ForeignKey("job.id"), nullable=True, unique=True),
        sa.Column("outcome", TEXT(), nullable=False),
        sa.Column("why", TEXT(), nullable=False),
        sa.Column("decode_tps", sa.Float(), nullable=True),
        sa.Column("low", sa.Float(), nullable=True),
        sa.Column("high", sa.Float(), nullable=True),
        sa.Column("text_sha256", TEXT(), nullable=False),
        sa.Column("environment", sa.JSON(), nullable=False),
        sa.Column("created_at", UtcDateTime(), nullable=False),
    )


def downgrade() -> None:
    for table in ("health_run", "golden", "rig_health"):
        op.drop_table(table)
    op.drop_column("worker", "heard_at")
    for table, name in reversed(ADDED):
        op.drop_column(table, name)
