"""Celery's way into this room; a task parses, calls and reports."""

from __future__ import annotations

from celery import shared_task

from jobs.config import Settings
from jobs.db import open_database
from web.export import export
from web.site import site_of


@shared_task(name="web.publish")  # type: ignore[untyped-decorator]  # celery has no types
def publish() -> str:
    """Write the static export; returns the path of its front page."""
    settings = Settings()
    engine = open_database(settings)
    try:
        return str(export(engine, settings.resolved_site, site=site_of(settings)))
    finally:
        engine.dispose()
