"""The values between looking at refs and telling of them; they hold facts and refuse to act."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from scout.graph import Graph, Reach, Triple


@dataclass(frozen=True)
class Place:
    """A repository as its news needs it; `watched` are full names of branches that are built."""

    engine: str
    repository: int
    github_id: int | None = None
    default_branch: str | None = None
    watched: frozenset[str] = frozenset()


@dataclass(frozen=True)
class Upstream:
    """What all forks are measured against."""

    repository: int
    head: str
    released: Reach
    everything: Reach


@dataclass(frozen=True)
class Neighbour:
    """Another fork and the patches it was known to have; the direct parent comes first."""

    engine: str
    repository: int
    patches: frozenset[Triple]


@dataclass(frozen=True)
class View:
    """All that a repository's news is judged by."""

    graph: Graph
    changed_paths: Callable[[Sequence[str]], Collection[str]]
    upstream: Upstream | None = None
    neighbours: Sequence[Neighbour] = ()


@dataclass(frozen=True)
class RefNews:
    """One event to be; `revision` is the commit to build, and `replaces` the head before it."""

    kind: str
    key: str
    title: str
    facts: Mapping[str, Any] = field(default_factory=dict)
    revision: str | None = None
    replaces: str | None = None
    happened_at: datetime | None = None
    low_priority: bool = False
