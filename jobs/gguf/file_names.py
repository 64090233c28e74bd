"""What the name of a weight file claims: its quantisation, its place in a set; names are hints."""

from __future__ import annotations

import re
from dataclasses import dataclass

_SHARD = re.compile(r"(?P<stem>.+)-(?P<number>\d{5})-of-(?P<count>\d{5})\.gguf", re.ASCII)
_LABEL = re.compile(
    r"(?<![A-Z0-9])"
    r"(?:UD-)?"
    r"(?:Q[1-8]_(?:[01](?:_[48]){0,2}|K(?:_[A-Z]{1,3})?)"
    r"|IQ[1-6]_(?:[A-Z]{1,3}(?:_[A-Z]{1,2})?)"
    r"|TQ[1-4]_[01]S?"
    r"|(?:MX|NV)FP4(?:_[A-Z]+)?"
    r"|BF16|FP?16|FP?32)"
    r"(?![A-Z0-9])",
    re.ASCII,
)


@dataclass(frozen=True)
class Shard:
    """One file of a set, counted from 1 as in its name."""

    stem: str
    number: int
    count: int

    @property
    def is_possible(self) -> bool:
        """Whether a set can have such a file."""
        return 1 <= self.number <= self.count


def shard_of(name: str) -> Shard | None:
    """The place a file's name gives it in a set; None where it names no set."""
    found = _SHARD.fullmatch(name)
    return Shard(found["stem"], int(found["number"]), int(found["count"])) if found else None


def quant_label(name: str) -> str:
    """The quantisation a file's name ends on, as UD-Q3_K_XL; empty where it names none."""
    found = _LABEL.findall(name.upper())
    return found[-1] if found else ""
