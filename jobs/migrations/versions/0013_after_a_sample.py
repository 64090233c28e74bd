"""What machine and card said right after each sample."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0013"
down_revision = "0012"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.add_column("sample", sa.Column("after", sa.JSON(), nullable=False, server_default="{}"))


def downgrade() -> None:
    op.drop_column("sample", "after")
