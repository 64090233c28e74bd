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
from alembic.util import CommandError
from sqlalchemy import Connection, Engine, event
from sqlalchemy.engine import make_url
from sqlalchemy.exc import ArgumentError, DBAPIError, NoSuchModuleError
from sqlmodel import Session, create_engine

from jobs.config import Settings
from jobs.errors import Permanent, UsageError

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
def trying(engine: Engine) -> Iterator[Session]:
    """A session that may write and whose changes are never kept."""
    with Session(engine, expire_on_commit=False) as session:
        yield session


@contextmanager
def reading(engine: Engine) -> Iterator[Session]:
    """A session that never writes."""
    quiet = engine.execution_options(reads=True)
    with Session(quiet, expire_on_commit=False) as session:
        yield session


def open_database(settings: Settings) -> Engine:
    """The installation's database: folders made, schema the newest.

    Raises `UsageError` for an address that names none, `Permanent` where it does not answer or
    was written by a newer forkscout.
    """
    settings.prepare()
    url = settings.resolved_database_url
    with _in_plain_words(url):
        engine = connect(url)
        if _schema(engine) != _newest_schema():
            migrate(url)
    return engine


@contextmanager
def _in_plain_words(url: str) -> Iterator[None]:
    try:
        yield
    except (ArgumentError, NoSuchModuleError, ModuleNotFoundError) as fault:
        raise UsageError(
            "FORKSCOUT_DATABASE_URL is no address of SQLite or PostgreSQL",
            advice="write postgresql+psycopg://user@host/name, or leave it empty for SQLite",
        ) from fault
    except DBAPIError as fault:
        shown = make_url(url).render_as_string(hide_password=True)
        says = " ".join(str(fault.orig).split())
        raise Permanent(
            f"the database {shown} does not answer: {says}",
            advice="start it, or look at FORKSCOUT_DATABASE_URL, FORKSCOUT_HOME and the disk",
        ) from fault
    except CommandError as fault:
        raise Permanent(
            f"this forkscout does not know the schema of its database ({fault})",
            advice="it was written by a newer forkscout: use that one, or another FORKSCOUT_HOME",
        ) from fault


def _schema(engine: Engine) -> str | None:
    with engine.connect() as connection:
        return MigrationContext.configure(connection).get_current_revision()


def _alembic() -> Config:
    config = Config()
    folder = str(Path(__file__).parent / "migrations")
    config.set_main_option("script_location", folder.replace("%", "%%"))
    return config


def _newest_schema() -> str | None:
    return ScriptDirectory.from_config(_alembic()).get_current_head()


def migrate(url: str) -> None:
    """Bring the database to the newest schema; of many that try at once, one does it."""
    config = _alembic()
    config.attributes["url"] = url
    command.upgrade(config, "head")
