"""The protocol every watched place fits: it tells what it saw, and decides nothing."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Protocol

from pydantic import SecretStr

from jobs.git_network import Held


@dataclass(frozen=True)
class Watched:
    """What a source needs to know of an engine."""

    name: str
    repo: str | None = None
    package: str | None = None
    branches: tuple[str, ...] = ()
    newest: int = 3
    is_fork: bool = False


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


@dataclass(frozen=True)
class RefsSeen:
    """Commits by full ref name; `refused` counts the names that nobody could read."""

    commits: Mapping[str, str]
    refused: int = 0


class RefSource(Protocol):
    """A place whose branches and tags we watch; an engine may have one of these and a `Source`."""

    def watches(self, engine: Watched) -> bool:
        """Whether this source knows the repository of `engine`."""

    def look(
        self,
        engine: Watched,
        *,
        network: Path,
        number: int,
        held: Held | None = None,
        tick: Callable[[], None] | None = None,
        token: SecretStr | None = None,
    ) -> RefsSeen:
        """All refs now, their history brought into `network` under `number`, where `held` is.

        `tick` is called several times a second; what it raises ends the look.
        Raises `ScoutError` where the place gave no complete answer; never reads absence into one.
        """

    def default_branch(
        self,
        engine: Watched,
        *,
        tick: Callable[[], None] | None = None,
        token: SecretStr | None = None,
    ) -> str | None:
        """The branch the repository calls its main one, where it says so."""
