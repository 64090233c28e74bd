"""What the headers of the model hub's files say of memory."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0008"
down_revision = "0007"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.add_column("hub_file", sa.Column("shape", sa.JSON(), nullable=True))


def downgrade() -> None:
    op.drop_column("hub_file", "shape")
