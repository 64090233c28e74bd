"""Alembic's entry: one connection, batch mode so that SQLite can alter tables."""

from __future__ import annotations

from alembic import context
from sqlmodel import SQLModel

from jobs import (  # noqa: F401  (they fill the metadata)
    arm_tables,
    build_tables,
    failure_tables,
    line_tables,
    negative_tables,
    planning_tables,
    rig_tables,
    sightings,
    tables,
)
from jobs.db import connect

MIGRATION_LOCK = 7_346_110_482  # any number, the same for every process of forkscout

url = context.config.attributes["url"]
engine = connect(url)
with engine.connect() as connection:
    context.configure(
        connection=connection, target_metadata=SQLModel.metadata, render_as_batch=True
    )
    with context.begin_transaction():
        if engine.dialect.name == "postgresql":
            connection.exec_driver_sql(f"SELECT pg_advisory_xact_lock({MIGRATION_LOCK})")
        context.run_migrations()
engine.dispose()
