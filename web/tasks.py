"""Celery's way into this room: look into the publish queue."""

from __future__ import annotations

from functools import lru_cache

from celery import shared_task

from jobs.config import Settings
from jobs.model import Kind
from jobs.station import Station, serve
from jobs.worker import is_ours, open_station
from web.publishing import publish

HANDLERS = {Kind.PUBLISH: publish}


@lru_cache(maxsize=1)
def _station(queue_name: str) -> Station:
    """This pool process's desk."""
    return open_station(Settings(), queue_name)


@shared_task(name="web.look", ignore_result=True)
def look(queue_name: str) -> None:
    """Do what is due in a queue."""
    if is_ours(queue_name):
        serve(_station(queue_name), queue_name, HANDLERS)
