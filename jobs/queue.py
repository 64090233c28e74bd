"""The doorbell and the clock: the Celery app, its schedule, and ringing; it holds no job."""

from __future__ import annotations

from collections.abc import Container, Mapping
from importlib.metadata import entry_points
from typing import Any

import structlog
from celery import Celery
from kombu.exceptions import OperationalError
from redis.exceptions import RedisError

from jobs import bell
from jobs.config import Settings

TASK_GROUP = "forkscout.tasks"
MOST_RINGS = 8
"""Doorbells kept ringing per queue; each that is heard serves until nothing is due."""

SOCKET_TIMEOUT_SECONDS = 5.0

log = structlog.get_logger()


def make_app(settings: Settings, *, rooms: Container[str] = ()) -> Celery:
    """The Celery app of this installation, made current for the shared tasks of `rooms`."""
    bell.use()
    app = Celery("forkscout", broker=settings.resolved_broker_url, set_as_current=True)
    app.conf.update(
        include=[e.value for e in entry_points(group=TASK_GROUP) if e.name in rooms],
        accept_content=["json"],
        task_serializer="json",
        task_ignore_result=True,
        task_acks_late=False,
        task_default_queue="scout",
        worker_prefetch_multiplier=1,
        worker_hijack_root_logger=False,
        worker_cancel_long_running_tasks_on_connection_loss=False,
        broker_connection_retry_on_startup=True,
        broker_connection_max_retries=None,
        broker_transport_options={
            "socket_connect_timeout": SOCKET_TIMEOUT_SECONDS,
            "socket_timeout": None if settings.embedded_broker else 3600,
        },
        timezone="UTC",
        beat_max_loop_interval=1.0,
        beat_schedule={
            "sweep": {
                "task": "scout.sweep",
                "schedule": settings.sweep_seconds,
                "options": {"queue": "scout", "expires": 2 * settings.sweep_seconds},
            },
            "watch": {
                "task": "scout.watch",
                "schedule": 60.0,
                "options": {"queue": "scout", "expires": 60.0},
            },
            "candidates": {
                "task": "scout.candidates",
                "schedule": 60.0,
                "options": {"queue": "scout", "expires": 60.0},
            },
            "github": {
                "task": "scout.github",
                "schedule": 60.0,
                "options": {"queue": "scout", "expires": 60.0},
            },
            "hub": {
                "task": "scout.hub",
                "schedule": 60.0,
                "options": {"queue": "scout", "expires": 60.0},
            },
        },
    )
    return app


def room_of(queue: str) -> str:
    """The room whose tasks serve a queue."""
    return {"scout": "scout", "publish": "web"}.get(queue, "workers")


def send(app: Celery, task: str, queue: str, *arguments: Any) -> bool:
    """Send a message; False where the broker is away, which the sweep makes good."""
    try:
        app.send_task(task, args=arguments, queue=queue, ignore_result=True, retry=False)
    except (OperationalError, RedisError, OSError) as fault:
        log.warning("doorbell not heard", queue=queue, cause=str(fault))
        return False
    return True


def ring(app: Celery, queue: str) -> bool:
    """Say that something is due in `queue`."""
    return send(app, f"{room_of(queue)}.look", queue, queue)


def sweep(app: Celery, due: Mapping[str, int]) -> dict[str, int]:
    """Ring for due jobs whose doorbell was lost; how often per queue."""
    rung = {}
    for queue, count in due.items():
        missing = min(count, MOST_RINGS) - _waiting(app, queue)
        rung[queue] = sum(ring(app, queue) for _ in range(max(0, missing)))
    return {queue: count for queue, count in rung.items() if count}


def _waiting(app: Celery, queue: str) -> int:
    """Messages that wait in one queue, over all of its priority keys."""
    with app.connection_for_read() as connection:
        channel = connection.default_channel
        return sum(
            int(channel.client.llen(channel._q_for_pri(queue, priority)))
            for priority in channel.priority_steps
        )
