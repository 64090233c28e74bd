"""What the model hub shows: places watched, repositories, files."""

from __future__ import annotations

import sqlalchemy as sa
import sqlmodel
from alembic import op

from jobs.columns import UtcDateTime

revision = "0006"
down_revision = "0005"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.create_table(
        "hub_watch",
        sa.Column("watch", sqlmodel.AutoString(), nullable=False),
        sa.Column("roles", sa.JSON(), nullable=False),
        sa.Column("retired", sa.Boolean(), nullable=False),
        sa.Column("created_at", UtcDateTime(timezone=True), nullable=False),
        sa.PrimaryKeyConstraint("watch"),
    )
    op.create_table(
        "hub_repository",
        sa.Column("id", sa.Integer(), nullable=False),
        sa.Column("hub_id", sqlmodel.AutoString(), nullable=False),
        sa.Column("full_name", sqlmodel.AutoString(), nullable=False),
        sa.Column("sha", sqlmodel.AutoString(), nullable=False),
        sa.Column("head_sha", sqlmodel.AutoString(), nullable=False),
        sa.Column("baseline_sha", sqlmodel.AutoString(), nullable=False),
        sa.Column("found_late", sa.Boolean(), nullable=False),
        sa.Column("state", sqlmodel.AutoString(), nullable=False),
        sa.Column("gated", sqlmodel.AutoString(), nullable=False),
        sa.Column("private", sa.Boolean(), nullable=False),
        sa.Column("disabled", sa.Boolean(), nullable=False),
        sa.Column("tags", sa.JSON(), nullable=False),
        sa.Column("base_models", sa.JSON(), nullable=False),
        sa.Column("watches", sa.JSON(), nullable=False),
        sa.Column("engine_refs", sa.JSON(), nullable=False),
        sa.Column("created_at", UtcDateTime(timezone=True), nullable=True),
        sa.Column("last_modified", UtcDateTime(timezone=True), nullable=True),
        sa.Column("misses", sa.Integer(), nullable=False),
        sa.Column("missed_since", UtcDateTime(timezone=True), nullable=True),
        sa.Column("failures", sa.Integer(), nullable=False),
        sa.Column("look_at", UtcDateTime(timezone=True), nullable=False),
        sa.Column("first_seen_at", UtcDateTime(timezone=True), nullable=False),
        sa.Column("last_seen_at", UtcDateTime(timezone=True), nullable=False),
        sa.PrimaryKeyConstraint("id"),
        sa.UniqueConstraint("hub_id"),
    )
    for column in ("full_name", "look_at"):
        op.create_index(op.f(f"ix_hub_repository_{column}"), "hub_repository", [column])
    op.create_table(
        "hub_file",
        sa.Column("id", sa.Integer(), nullable=False),
        sa.Column("repository_id", sa.Integer(), nullable=False),
        sa.Column("path", sqlmodel.AutoString(), nullable=False),
        sa.Column("size_bytes", sa.BigInteger(), nullable=True),
        sa.Column("sha256", sqlmodel.AutoString(), nullable=False),
        sa.Column("xet_hash", sqlmodel.AutoString(), nullable=False),
        sa.Column("blob_id", sqlmodel.AutoString(), nullable=False),
        sa.Column("role", sqlmodel.AutoString(), nullable=False),
        sa.Column("quantisation", sqlmodel.AutoString(), nullable=False),
        sa.Column("facts", sa.JSON(), nullable=False),
        sa.Column("pending", sa.Boolean(), nullable=False),
        sa.Column("quiet", sa.Boolean(), nullable=False),
        sa.Column("attempts", sa.Integer(), nullable=False),
        sa.Column("unread", sqlmodel.AutoString(), nullable=False),
        sa.Column("first_seen_at", UtcDateTime(timezone=True), nullable=False),
        sa.Column("changed_at", UtcDateTime(timezone=True), nullable=False),
        sa.Column("gone_at", UtcDateTime(timezone=True), nullable=True),
        sa.ForeignKeyConstraint(["repository_id"], ["hub_repository.id"]),
        sa.PrimaryKeyConstraint("id"),
        sa.UniqueConstraint("repository_id", "path"),
    )
    for column in ("repository_id", "sha256"):
        op.create_index(op.f(f"ix_hub_file_{column}"), "hub_file", [column])


def downgrade() -> None:
    for table in ("hub_file", "hub_repository", "hub_watch"):
        op.drop_table(table)
