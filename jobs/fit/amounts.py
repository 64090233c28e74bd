"""Amounts of memory with their doubt, and the words people write for them; integers, bytes."""

from __future__ import annotations

import re
from dataclasses import dataclass
from enum import StrEnum
from fractions import Fraction

from jobs.errors import UsageError

MIB = 2**20
GIB = 2**30
UNITS = {
    "B": 1,
    "KiB": 2**10,
    "MiB": MIB,
    "GiB": GIB,
    "TiB": 2**40,
    "kB": 10**3,
    "MB": 10**6,
    "GB": 10**9,
    "TB": 10**12,
}
MOST_BYTES = 2**50
_AMOUNT = re.compile(r"([0-9]{1,15}(?:\.[0-9]{1,9})?) ?([A-Za-z]{1,3})", re.ASCII)


class Basis(StrEnum):
    """Where a figure comes from, surest first."""

    MEASURED = "measured"
    FORMULA = "formula"
    INFERRED = "inferred"


@dataclass(frozen=True)
class Band:
    """The least, the likely and the most bytes."""

    low: int
    likely: int
    high: int

    def __post_init__(self) -> None:
        if not 0 <= self.low <= self.likely <= self.high:
            raise ValueError(f"not a band: {self.low}, {self.likely}, {self.high}")

    def __add__(self, other: Band) -> Band:
        return Band(self.low + other.low, self.likely + other.likely, self.high + other.high)

    def times(self, count: int) -> Band:
        """The same, several times over."""
        return Band(self.low * count, self.likely * count, self.high * count)

    @property
    def width(self) -> int:
        """How far least and most are apart."""
        return self.high - self.low


NOTHING = Band(0, 0, 0)


def exactly(size_bytes: int) -> Band:
    """A figure without doubt."""
    return Band(size_bytes, size_bytes, size_bytes)


def around(likely: int, *, below: int = 0, above: int = 0) -> Band:
    """A figure that may be smaller by `below` or larger by `above`; never below nothing."""
    return Band(max(0, likely - below), likely, likely + above)


def parse_amount(text: str, *, what: str) -> int:
    """Bytes of `24GiB`, `0.93 GB`, `512MiB`; raises UsageError for anything less plain."""
    found = _AMOUNT.fullmatch(text.strip())
    if not found or found[2] not in UNITS:
        raise UsageError(
            f"{what} {text[:40]!r} is no amount of memory",
            advice="Write a number and a unit, as 24GiB or 25.7GB; 24 GiB are 25.77 GB.",
        )
    size_bytes = int(Fraction(found[1]) * UNITS[found[2]])
    if not 0 <= size_bytes <= MOST_BYTES:
        raise UsageError(
            f"{what} {text[:40]!r} is more than any card has", advice="Check the unit."
        )
    return size_bytes


def mib(size_bytes: int) -> str:
    """How an amount is shown: whole MiB with thousands apart."""
    return f"{round(size_bytes / MIB):,}"


def in_words(size_bytes: int) -> str:
    """A size in the largest unit that leaves something before the point, small ones in bytes."""
    for name, unit in (("GiB", GIB), ("MiB", MIB)):
        if size_bytes >= unit:
            return f"{size_bytes / unit:,.2f} {name}"
    return f"{size_bytes:,} bytes" if size_bytes != 1 else "1 byte"
