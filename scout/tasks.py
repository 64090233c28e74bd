"""The Celery task that looks around; the message says only "look", the rows say at what."""

from __future__ import annotations

from datetime import UTC, datetime

import structlog
from celery import shared_task

from jobs.config import Settings
from jobs.db import open_database
from scout.watch import watch

_log = structlog.get_logger(__name__)


@shared_task(name="scout.watch")  # type: ignore[untyped-decorator]
def watch_sources() -> dict[str, int]:
    """Look at every watched engine once."""
    settings = Settings()
    database = open_database(settings)
    try:
        summary = watch(database, now=lambda: datetime.now(UTC), log=settings.logs / "scout.log")
    finally:
        database.dispose()
    for trouble in summary.troubles:
        _log.warning("source failed", engine=trouble.engine, reason=trouble.message)
    return {"new": len(summary.new), "troubles": len(summary.troubles)}
