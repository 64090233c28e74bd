"""Waiting for something to become true, with a deadline that a busy machine can meet."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import TypeVar

Found = TypeVar("Found")


def wait_for(look: Callable[[], Found], *, seconds: float = 30.0, what: str = "it") -> Found:
    """What `look` returns as soon as that is true; fails after `seconds`."""
    deadline = time.monotonic() + seconds
    while not (found := look()):
        assert time.monotonic() < deadline, f"{what} did not happen in {seconds:g} s"
        time.sleep(0.05)
    return found
