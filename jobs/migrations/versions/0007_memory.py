"""What headers say of model files, and what boots said of memory."""

from __future__ import annotations

import sqlalchemy as sa
import sqlmodel
from alembic import op

revision = "0007"
down_revision = "0006"
branch_labels = None
depends_on = None


def upgrade() -> None:
    for name in ("facts", "shape"):
        op.add_column("model_file", sa.Column(name, sa.JSON(), nullable=True))
    op.add_column(
        "model_file",
        sa.Column("header_fault", sqlmodel.AutoString(), nullable=False, server_default=""),
    )
    for name in ("layout", "memory"):
        op.add_column("boot", sa.Column(name, sa.JSON(), nullable=True))


def downgrade() -> None:
    for name in ("memory", "layout"):
        op.drop_column("boot", name)
    for name in ("header_fault", "shape", "facts"):
        op.drop_column("model_file", name)
