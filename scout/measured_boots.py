"""What boots taught, where this installation has a database; makes none and waits for none."""

from __future__ import annotations

from pathlib import Path

from sqlalchemy.engine import make_url
from sqlalchemy.exc import ArgumentError

from jobs.config import Settings
from jobs.db import open_database, reading
from jobs.errors import Permanent
from jobs.fit.lessons import Lesson, lessons
from jobs.store import memories


def lessons_at_hand() -> tuple[Lesson, ...]:
    """The lessons of all measured boots; none where there is no database yet.

    Raises as `open_database` where one is named and does not answer.
    """
    settings = Settings()
    if not _is_there(settings.resolved_database_url):
        return ()
    try:
        database = open_database(settings)
    except Permanent as fault:
        raise Permanent(
            fault.detail, advice=f"{fault.advice}; --raw leaves out what boots taught"
        ) from fault
    try:
        with reading(database) as session:
            return lessons(memories.heard(session).boots)
    finally:
        database.dispose()


def _is_there(url: str) -> bool:
    try:
        address = make_url(url)
    except ArgumentError:
        return True
    if address.get_backend_name() != "sqlite":
        return True
    return bool(address.database) and Path(str(address.database)).exists()
