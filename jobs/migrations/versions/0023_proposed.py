"""Which revisions stand in a pull request alone, and may be anybody's."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0023"
down_revision = "0020"
branch_labels = None
depends_on = None

OF_PULLS = """
UPDATE revision SET proposed = true WHERE engine_id IN (
    SELECT id FROM engine WHERE CAST(branches AS TEXT) LIKE '%"pull/%'
)
"""


def upgrade() -> None:
    op.add_column(
        "revision", sa.Column("proposed", sa.Boolean(), nullable=False, server_default=sa.false())
    )
    op.execute(OF_PULLS)


def downgrade() -> None:
    op.drop_column("revision", "proposed")
