"""Whether a worker still hears its doorbell; it says so, and ends nothing."""

from __future__ import annotations

import fcntl
import os
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path


def _place(locks: Path, queue_name: str) -> Path:
    return locks / f"look.{queue_name}"


@contextmanager
def looking(locks: Path, queue_name: str) -> Iterator[None]:
    """A doorbell was heard, and somebody looks into the queue while the block runs."""
    with _place(locks, queue_name).open("w") as mark:
        fcntl.flock(mark, fcntl.LOCK_SH)
        os.utime(mark.fileno())
        yield


@dataclass(frozen=True)
class Heard:
    """What was seen of a worker's looks: a mark that each new one changes, and whether one runs."""

    mark: int
    runs: bool


def heard(locks: Path, queue_name: str) -> Heard:
    """The newest look into a queue, begun by any process of this home."""
    with _place(locks, queue_name).open("a") as mark:
        try:
            fcntl.flock(mark, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            return Heard(0, runs=True)
        return Heard(os.fstat(mark.fileno()).st_mtime_ns, runs=False)


class Ear:
    """Knows for how long due work has waited while nobody looked."""

    def __init__(self, patience_seconds: float) -> None:
        self._patience = patience_seconds
        self._since: tuple[int, float] | None = None

    def is_deaf(self, found: Heard, *, waits: bool, at_seconds: float) -> bool:
        """Whether work waits unheard for longer than patience allows; `at_seconds` only grows."""
        if found.runs or not waits:
            self._since = None
            return False
        if self._since is None or self._since[0] != found.mark:
            self._since = (found.mark, at_seconds)
        return at_seconds - self._since[1] > self._patience
