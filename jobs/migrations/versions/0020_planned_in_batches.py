"""What planning asks of jobs by index: their revision and event; heads that were replaced."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0020"
down_revision = "0019"
branch_labels = None
depends_on = None

TAKEN = ("revision_id", "event_id")
FILL = {
    "sqlite": (
        "UPDATE job SET revision_id = json_extract(payload, '$.revision_id')"
        " WHERE json_type(payload, '$.revision_id') = 'integer'",
        "UPDATE job SET event_id = json_extract(cause, '$.event_id')"
        " WHERE json_type(cause, '$.event_id') = 'integer'",
    ),
    "postgresql": (
        "UPDATE job SET revision_id = CAST(payload ->> 'revision_id' AS INTEGER)"
        " WHERE (payload ->> 'revision_id') ~ '^[0-9]{1,9}$'",
        "UPDATE job SET event_id = CAST(cause ->> 'event_id' AS INTEGER)"
        " WHERE (cause ->> 'event_id') ~ '^[0-9]{1,9}$'",
    ),
}
PARTIAL = {
    "ix_event_unplanned": ("event", ["id"], "NOT planned"),
    "ix_left_out_open": ("left_out", ["why", "left_at"], "closed_at IS NULL"),
}
INDEXES = {"ix_job_revision": "revision_id", "ix_job_event": "event_id"}


def upgrade() -> None:
    op.add_column(
        "revision", sa.Column("replaced", sa.Boolean(), nullable=False, server_default=sa.false())
    )
    for column in TAKEN:
        op.add_column("job", sa.Column(column, sa.Integer(), nullable=True))
    for statement in FILL[op.get_bind().dialect.name]:
        op.execute(statement)
    for name, column in INDEXES.items():
        op.create_index(name, "job", [column])
    for name, (table, columns, condition) in PARTIAL.items():
        where = sa.text(condition)
        op.create_index(name, table, columns, sqlite_where=where, postgresql_where=where)


def downgrade() -> None:
    for name, (table, _, _) in PARTIAL.items():
        op.drop_index(name, table)
    for name in INDEXES:
        op.drop_index(name, "job")
    for column in TAKEN:
        op.drop_column("job", column)
    op.drop_column("revision", "replaced")
