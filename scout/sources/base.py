"""The protocol every watched place fits: it tells what it saw, and decides nothing."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Protocol


@dataclass(frozen=True)
class Watched:
    """What a source needs to know of an engine."""

    name: str
    repo: str | None = None
    package: str | None = None
    branches: tuple[str, ...] = ()
    newest: int = 3


@dataclass(frozen=True)
class Sighting:
    """One revision a source saw; `commit` is its identity, `label` what people call it."""

    label: str
    commit: str
    order_key: str
    details: Mapping[str, Any] = field(default_factory=dict)


class Source(Protocol):
    """One module per place we watch."""

    def watches(self, engine: Watched) -> bool:
        """Whether this source is the one that knows about `engine`."""

    def look(
        self, engine: Watched, known: Mapping[str, str], *, log: Path | None
    ) -> Sequence[Sighting]:
        """What is there now, given commits known by label.

        Raises `ScoutError` where the place gave no complete answer; never reads absence into one.
        """
