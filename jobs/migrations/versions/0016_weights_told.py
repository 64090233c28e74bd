"""Files of the hub that are refused by their name, and the weights store of each worker."""

from __future__ import annotations

import sqlalchemy as sa
import sqlmodel
from alembic import op

from jobs.columns import UtcDateTime

revision = "0016"
down_revision = "0015"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.add_column(
        "hub_repository", sa.Column("refused", sa.JSON(), nullable=False, server_default="[]")
    )
    op.create_table(
        "worker_store",
        sa.Column("worker", sqlmodel.AutoString(), primary_key=True),
        sa.Column("queue", sqlmodel.AutoString(), nullable=False, index=True),
        sa.Column("store", sqlmodel.AutoString(), nullable=False),
        sa.Column("since", UtcDateTime(timezone=True), nullable=False),
    )


def downgrade() -> None:
    op.drop_table("worker_store")
    with op.batch_alter_table("hub_repository") as table:
        table.drop_column("refused")
