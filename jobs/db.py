"""The engine and its two kinds of session; short transactions, and writers that queue politely."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import Any, TypeVar

import stamina
from alembic import command
from alembic.config import Config
from alembic.runtime.migration import MigrationContext
from alembic.script import ScriptDirectory
from alembic.util import CommandError
from sqlalchemy import Connection, Engine, event, func, select
from sqlalchemy.engine import make_url
from sqlalchemy.exc import (
    ArgumentError,
    DBAPIError,
    InvalidatePoolError,
    NoSuchModuleError,
    OperationalError,
)
from sqlalchemy.pool import ConnectionPoolEntry
from sqlmodel import Session, create_engine

from jobs import clock
from jobs.config import Settings
from jobs.errors import Permanent, UsageError

BUSY_SECONDS = 30.0
SHUTDOWN = "57P"
"""How PostgreSQL's codes begin where it ends a connection, or is just starting or stopping."""

QUIET_SECONDS = 0.1
"""A connection that rested longer is asked first whether it lives; that costs a trip."""

FROZEN_SECONDS = 30
"""How long a transaction may stand still: less than a lease lasts, so that no job is lost by it."""

FROZEN = "25P03"
"""PostgreSQL's code for a transaction that it ended because nothing happened in it."""

USED = "used"

Done = TypeVar("Done")


def connect(url: str) -> Engine:
    """An engine for `url`; SQLite gets WAL, foreign keys and writers that lock at once."""
    if url.startswith("sqlite"):
        engine = create_engine(url, connect_args={"timeout": BUSY_SECONDS})
        event.listen(engine, "connect", _tune_sqlite)
        event.listen(engine, "begin", _begin_sqlite)
        return engine
    engine = create_engine(url)
    event.listen(engine, "connect", _tune_postgresql)
    event.listen(engine, "checkin", _note_use)
    event.listen(engine, "checkout", partial(_ping_after_quiet, engine))
    return engine


def _tune_postgresql(connection: Any, _record: Any) -> None:
    """A process that stands still in the middle of a change lets go of what others wait for."""
    with connection.cursor() as cursor:
        cursor.execute(f"SET idle_in_transaction_session_timeout = '{FROZEN_SECONDS}s'")
    connection.commit()


def _note_use(_connection: Any, record: ConnectionPoolEntry) -> None:
    record.info[USED] = time.monotonic()


def _ping_after_quiet(
    engine: Engine, connection: Any, record: ConnectionPoolEntry, _proxy: Any
) -> None:
    used = record.info.get(USED)
    if used is None or time.monotonic() - used < QUIET_SECONDS:
        return
    try:
        engine.dialect.do_ping(connection)
    except engine.dialect.loaded_dbapi.Error as fault:
        raise InvalidatePoolError("the connection was cut while nobody used it") from fault


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
def at_once(engine: Engine) -> Iterator[Connection]:
    """PostgreSQL, each statement committed by itself: one trip to the server instead of three."""
    with engine.connect() as connection:
        yield connection.execution_options(isolation_level="AUTOCOMMIT")


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


def insist(engine: Engine, act: Callable[[Session], Done], *, seconds: float) -> Done:
    """What `act` returns, committed; it is done anew for some seconds where the connection is cut.

    The answer to a commit can be lost too: `act` must refuse, or do no harm, the second time.
    """

    def once() -> Done:
        with writing(engine) as session:
            return act(session)

    return over_cuts(once, seconds=seconds)


def over_cuts(act: Callable[[], Done], *, seconds: float) -> Done:
    """What `act` returns; it is done anew for some seconds where the connection is cut."""
    for attempt in stamina.retry_context(
        on=is_cut, attempts=None, timeout=seconds, wait_initial=0.1, wait_max=2.0
    ):
        with attempt:
            return act()
    raise AssertionError("unreachable: the last attempt raises")


def is_cut(fault: Exception) -> bool:
    """Whether the connection, not the question, was at fault."""
    if not isinstance(fault, DBAPIError):
        return False
    code = getattr(fault.orig, "sqlstate", "")
    unanswered = code is None and isinstance(fault, OperationalError)
    ended = (code or "").startswith(SHUTDOWN) or code == FROZEN
    return fault.connection_invalidated or unanswered or ended


def database_now(session: Session) -> datetime:
    """This moment by the one clock that every machine shares, the database's.

    Clocks of machines disagree by minutes; what one writes into a row and another compares with
    the present (beats, due times) is read from here. SQLite lives on one machine, and has its.
    """
    if session.get_bind().dialect.name == "postgresql":
        found: datetime = session.execute(select(func.clock_timestamp())).scalar_one()
        return found.astimezone(UTC)
    return clock.of_machine()


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
    with engine.execution_options(reads=True).connect() as connection:
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
