"""Where an answer's bytes belong in a file of known size, and how fast they come; asks nobody."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass

from jobs.errors import Transient

_RANGE = re.compile(r"bytes (\d{1,18})-(\d{1,18})/(\d{1,18})", re.ASCII)
_LENGTH = re.compile(r"\d{1,18}", re.ASCII)
_AGAIN = "the job is tried again by itself; then another host may answer"


def range_header(offset: int, size_bytes: int) -> dict[str, str]:
    """What asks for the rest of a file."""
    return {"Range": f"bytes={offset}-{size_bytes - 1}"}


def start_of(
    status: int, headers: Mapping[str, str], *, offset: int, size_bytes: int, what: str
) -> int:
    """Where the first byte of the body belongs: `offset`, or 0 where the range was ignored.

    Raises `Transient` for an answer that speaks of another file or another part of it.
    """
    if headers.get("content-encoding", "identity").lower() != "identity":
        raise _wrong(what, f"is packed as {headers['content-encoding'][:40]!r}")
    if status == 200:
        length = headers.get("content-length", "")
        if _LENGTH.fullmatch(length) and int(length) != size_bytes:
            raise _wrong(what, f"has {int(length):,} bytes, not {size_bytes:,}")
        return 0
    said = headers.get("content-range", "")
    found = _RANGE.fullmatch(said)
    if found is None:
        raise _wrong(what, f"comes with the range {said[:80]!r}")
    first, last, total = (int(number) for number in found.groups())
    if total != size_bytes:
        raise _wrong(what, f"has {total:,} bytes, not {size_bytes:,}")
    if first != offset or not first <= last < total:
        raise _wrong(what, f"comes as bytes {first}-{last}, asked was from {offset}")
    return offset


def _wrong(what: str, says: str) -> Transient:
    return Transient(f"{what} {says}", advice=_AGAIN)


@dataclass(frozen=True)
class LeastRate:
    """The least that each stretch of waiting for a server must bring."""

    seconds: float = 60.0
    bytes_a_second: int = 10 * 1024


LEAST_RATE = LeastRate()
"""What no usable line stays below for a minute, and a server that drips on purpose does."""


class Waiting:
    """Time spent waiting for one file, whatever the number of answers, and what it brought.

    Time in which nobody waits, as while a slow disk writes, does not count.
    """

    def __init__(self, least: LeastRate, what: str) -> None:
        self._least, self._what = least, what
        self._seconds, self._bytes = 0.0, 0

    def note(self, seconds: float, *, gained_bytes: int) -> None:
        """Raises `Transient` at the end of a stretch that brought too little."""
        self._seconds += seconds
        self._bytes += gained_bytes
        if self._seconds < self._least.seconds:
            return
        if self._bytes < self._seconds * self._least.bytes_a_second:
            raise Transient(
                f"{self._what} comes too slowly: {self._bytes:,} bytes "
                f"in {self._seconds:.0f} s of waiting",
                advice=_AGAIN,
            )
        self._seconds, self._bytes = 0.0, 0


@dataclass(frozen=True)
class Pace:
    """How fast bytes have come since a moment of a monotonic clock."""

    began_at: float
    began_bytes: int

    def words(self, *, done: int, total: int, now: float) -> str:
        """Rate and time left, as `52.0 MB/s, 5 min left`; nothing before there is a rate."""
        seconds = now - self.began_at
        gained = done - self.began_bytes
        if seconds < 0.5 or gained <= 0:
            return ""
        rate = gained / seconds
        return f"{rate / 1e6:.1f} MB/s, {_span((total - done) / rate)} left"


def _span(seconds: float) -> str:
    if seconds < 90:
        return f"{seconds:.0f} s"
    return f"{seconds / 60:.0f} min" if seconds < 5400 else f"{seconds / 3600:.1f} h"
