"""Which weights store holds a model file; a worker takes stock of its own when it starts."""

from __future__ import annotations

import sqlalchemy as sa
import sqlmodel
from alembic import op

from jobs.columns import UtcDateTime

revision = "0010"
down_revision = "0009"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.create_table(
        "stored_weight",
        sa.Column("model_file_id", sa.Integer(), nullable=False),
        sa.Column("store", sqlmodel.AutoString(), nullable=False),
        sa.Column("since", UtcDateTime(timezone=True), nullable=False),
        sa.ForeignKeyConstraint(["model_file_id"], ["model_file.id"]),
        sa.PrimaryKeyConstraint("model_file_id", "store"),
    )
    op.drop_column("model_file", "present")


def downgrade() -> None:
    op.add_column(
        "model_file",
        sa.Column("present", sa.Boolean(), nullable=False, server_default=sa.false()),
    )
    op.execute(
        sa.text(
            "UPDATE model_file SET present = :held "
            "WHERE id IN (SELECT model_file_id FROM stored_weight)"
        ).bindparams(held=True)
    )
    op.drop_table("stored_weight")
