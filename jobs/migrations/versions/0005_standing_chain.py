"""What a standing was worked out from."""

from __future__ import annotations

import sqlalchemy as sa
import sqlmodel
from alembic import op

revision = "0005"
down_revision = "0004"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.add_column(
        "standing",
        sa.Column("chain", sqlmodel.AutoString(), nullable=False, server_default=""),
    )


def downgrade() -> None:
    op.drop_column("standing", "chain")
