"""The engine and its two kinds of session; short transactions, and writers that queue politely."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from alembic import command
from alembic.config import Config
from alembic.runtime.migration import MigrationContext
from alembic.script import ScriptDirectory
from sqlalchemy import Connection, Engine, event
from sqlmodel import Session, create_engine

from jobs.config import Settings

BUSY_SECONDS = 30.0


def connect(url: str) -> Engine:
    """An engine for `url`; SQLite gets WAL, foreign keys and writers that lock at once."""
    if url.startswith("sqlite"):
        engine = create_engine(url, connect_args={"timeout": BUSY_SECONDS})
        event.listen(engine, "connect", _tune_sqlite)
        event.listen(engine, "begin", _begin_sqlite)
        return engine
    return create_engine(url, pool_pre_ping=True)


def _tune_sqlite(connection: Any, _record: Any) -> None:
    connection.isolation_level = None
    cursor = connection.cursor()
    cursor.execute("PRAGMA journal_mode=WAL")
    cursor.execute("PRAGMA synchronous=NORMAL")
    cursor.execute("PRAGMA foreign_keys=ON")
    cursor.close()


def _begin_sqlite(connection: Connection) -> None:
    """Writers take the lock first: upgrading a read lock fails with "database is locked"."""
    reads = connection.get_execution_options().get("reads", False)
    connection.exec_driver_sql("BEGIN" if reads else "BEGIN IMMEDIATE")


@contextmanager
def writing(engine: Engine) -> Iterator[Session]:
    """A session that commits when the block ends well and rolls back when it does not."""
    with Session(engine, expire_on_commit=False) as session, session.begin():
        yield session


@contextmanager
def reading(engine: Engine) -> Iterator[Session]:
    """A session that never writes."""
    quiet = engine.execution_options(reads=True)
    with Session(quiet, expire_on_commit=False) as session:
        yield session


def open_database(settings: Settings) -> Engine:
    """The installation's database: folders made, schema the newest."""
    settings.prepare()
    engine = connect(settings.resolved_database_url)
    if _schema(engine) != _newest_schema():
        migrate(settings.resolved_database_url)
    return engine


def _schema(engine: Engine) -> str | None:
    with engine.connect() as connection:
        return MigrationContext.configure(connection).get_current_revision()


def _alembic() -> Config:
    config = Config()
    config.set_main_option("script_location", str(Path(__file__).parent / "migrations"))
    return config


def _newest_schema() -> str | None:
    return ScriptDirectory.from_config(_alembic()).get_current_head()


def migrate(url: str) -> None:
    """Bring the database to the newest schema; of many that try at once, one does it."""
    config = _alembic()
    config.attributes["url"] = url
    command.upgrade(config, "head")
