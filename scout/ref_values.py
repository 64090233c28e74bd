"""The values between looking at refs and telling of them; they hold facts and refuse to act."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from itertools import product
from typing import Any

from scout.event_kinds import EventKind
from scout.graph import Graph, Reach, Triple

Names = tuple[str, ...]
"""What event keys call a repository, best first."""


def names_of(repository: int, github_id: int | None, siblings: Sequence[int] = ()) -> Names:
    """GitHub's number once that is known; a row's own number never looks like one.

    Engines of one repository have a row each, and call it by the first of them.
    """
    own = tuple(f"r{number}" for number in sorted({repository, *siblings}))
    return own if github_id is None else (str(github_id), *own)


def keys_of(kind: str, tail: str, *repositories: Names) -> tuple[str, tuple[str, ...]]:
    """The key of an event about these repositories, and the keys it may have been told by before
    GitHub's numbers were known."""
    key, *former = (":".join(("gh", kind, *names, tail)) for names in product(*repositories))
    return key, tuple(former)


@dataclass(frozen=True)
class Place:
    """A repository as its news needs it; `watched` are full names of branches that are built.

    What moves `elsewhere` is told by another engine of the repository, `siblings` are its rows.
    """

    engine: str
    repository: int
    github_id: int | None = None
    default_branch: str | None = None
    watched: frozenset[str] = frozenset()
    siblings: tuple[int, ...] = ()
    elsewhere: frozenset[str] = frozenset()

    @property
    def names(self) -> Names:
        """What keys call it."""
        return names_of(self.repository, self.github_id, self.siblings)


@dataclass(frozen=True)
class Upstream:
    """What all forks are measured against."""

    repository: int
    head: str
    released: Reach
    everything: Reach
    engine: str = "upstream"
    github_id: int | None = None
    siblings: tuple[int, ...] = ()

    @property
    def names(self) -> Names:
        """What keys call it."""
        return names_of(self.repository, self.github_id, self.siblings)


@dataclass(frozen=True)
class Neighbour:
    """Another fork and the patches it was known to have; the direct parent comes first."""

    engine: str
    repository: int
    patches: frozenset[Triple]
    github_id: int | None = None
    siblings: tuple[int, ...] = ()

    @property
    def names(self) -> Names:
        """What keys call it."""
        return names_of(self.repository, self.github_id, self.siblings)


@dataclass(frozen=True)
class View:
    """All that a repository's news is judged by."""

    graph: Graph
    changed_paths: Callable[[Sequence[str]], Collection[str] | None]
    """None where the paths are too many to be named."""
    upstream: Upstream | None = None
    neighbours: Sequence[Neighbour] = ()
    paths_between: Callable[[str, str], Collection[str] | None] = lambda _before, _after: None
    """None where that cannot be told."""


@dataclass(frozen=True)
class RefNews:
    """One event to be; `revision` is the commit to build, and `replaces` the head before it.

    It is old news where an event of one of the `former` keys was told.
    """

    kind: EventKind
    key: str
    title: str
    facts: Mapping[str, Any] = field(default_factory=dict)
    revision: str | None = None
    replaces: str | None = None
    happened_at: datetime | None = None
    low_priority: bool = False
    former: tuple[str, ...] = ()
