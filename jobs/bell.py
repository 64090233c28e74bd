"""The doorbell's transport: what lies in a queue and is no message is thrown away, said once.

Kombu lets such bytes end the worker that pops them, and the next worker pops the next ones.
"""

from __future__ import annotations

from queue import Empty
from typing import Any

import structlog
from kombu.transport import TRANSPORT_ALIASES, redis

NO_MESSAGE = (ValueError, KeyError, TypeError, AttributeError)
"""What bytes that are no JSON, or JSON of another shape, make kombu raise."""

log = structlog.get_logger()


class Channel(redis.Channel):
    """A channel that goes on after bytes that are no message."""

    def _brpop_read(self, **options: Any) -> Any:
        try:
            return super()._brpop_read(**options)  # type: ignore[no-untyped-call]
        except NO_MESSAGE as fault:
            log.warning("no message", fault=f"{type(fault).__name__}: {fault}"[:200])
            raise Empty from fault


class Transport(redis.Transport):
    """Redis or Valkey, heard with patience."""

    Channel = Channel


def use() -> None:
    """Let every connection of this process go through it."""
    TRANSPORT_ALIASES["redis"] = f"{__name__}:Transport"
