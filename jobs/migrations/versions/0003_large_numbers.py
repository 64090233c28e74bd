"""Sizes beyond 2 GiB, and ids that others give."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0003"
down_revision = "0002"
branch_labels = None
depends_on = None

LARGE = (
    ("model_file", "size_bytes", True),
    ("build", "size_bytes", False),
    ("result", "peak_memory_bytes", True),
    ("boot", "peak_memory_bytes", True),
    ("repository", "github_id", True),
    ("repository", "parent_github_id", True),
    ("repository", "root_github_id", True),
)


def upgrade() -> None:
    """SQLite's integers are large already, and rewriting its tables would gain nothing."""
    if op.get_bind().dialect.name == "sqlite":
        return
    for table, column, nullable in LARGE:
        op.alter_column(
            table,
            column,
            type_=sa.BigInteger(),
            existing_type=sa.Integer(),
            existing_nullable=nullable,
        )


def downgrade() -> None:
    """Fails where a number is large by now."""
    if op.get_bind().dialect.name == "sqlite":
        return
    for table, column, nullable in LARGE:
        op.alter_column(
            table,
            column,
            type_=sa.Integer(),
            existing_type=sa.BigInteger(),
            existing_nullable=nullable,
        )
