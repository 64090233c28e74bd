"""Leases, losses, cancels, supersessions and ends in any order: no invariant breaks."""

from __future__ import annotations

import shutil
from pathlib import Path

from hypothesis import HealthCheck, settings
from hypothesis.stateful import run_state_machine_as_test
from sqlmodel import SQLModel
from support.lifecycle_machine import Jobs

from jobs import db

CALM = {
    "deadline": None,
    "derandomize": True,
    "database": None,
    "suppress_health_check": list(HealthCheck),
}


def test_no_order_of_events_breaks_an_invariant_on_sqlite(tmp_path: Path) -> None:
    """Forty lives of thirty steps each; after each step all rows are looked at."""
    empty = tmp_path / "empty.sqlite"
    db.migrate(f"sqlite:///{empty}")
    place = tmp_path / "now.sqlite"

    class OverSqlite(Jobs):
        def __init__(self) -> None:
            super().__init__()
            for old in tmp_path.glob("now.sqlite*"):
                old.unlink()
            shutil.copy(empty, place)
            self.engine = db.connect(f"sqlite:///{place}")

        def teardown(self) -> None:
            try:
                super().teardown()
            finally:
                self.engine.dispose()

    run_state_machine_as_test(
        OverSqlite, settings=settings(max_examples=40, stateful_step_count=30, **CALM)
    )


def test_no_order_of_events_breaks_an_invariant_on_postgresql(postgres) -> None:
    """Fewer and shorter lives: the rules are the same, the locks are others."""
    url = postgres.fresh()
    db.migrate(url)
    server = db.connect(url)

    class OverPostgres(Jobs):
        engine = server

        def teardown(self) -> None:
            try:
                super().teardown()
            finally:
                with server.begin() as connection:
                    for table in reversed(SQLModel.metadata.sorted_tables):
                        connection.execute(table.delete())

    run_state_machine_as_test(
        OverPostgres, settings=settings(max_examples=10, stateful_step_count=20, **CALM)
    )
    server.dispose()
