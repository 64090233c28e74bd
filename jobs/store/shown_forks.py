"""The frozen values that pages of forks show; rows end here, and nothing here knows a session."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime

from jobs.store.shown import ShownEvent, ShownRevision


@dataclass(frozen=True)
class ShownDistance:
    """Commits a head has beyond another one, and lacks of it; None where nothing is in common."""

    ahead: int | None
    behind: int | None
    merge_base: str | None


@dataclass(frozen=True)
class ShownSync:
    """The newest upstream commit a head stands on, and when and how it got there."""

    commit: str
    upstream_at: datetime
    brought_at: datetime
    brought_by: str | None
    method: str


@dataclass(frozen=True)
class ShownAbsorbed:
    """What came from another engine: commits as they were, patches also after a rebase."""

    source: str
    commits: int
    patches: int


@dataclass(frozen=True)
class Beyond:
    """Names that a base does not understand; `names` may be fewer than `count`."""

    count: int
    names: tuple[str, ...]


@dataclass(frozen=True)
class Ability:
    """One kind of names; None where the base does not say what it understands of it."""

    kind: str
    understood: int
    beyond_upstream: Beyond | None
    beyond_parent: Beyond | None


@dataclass(frozen=True)
class Standing:
    """Where a head stands in its chain, as it was worked out from git.

    `committed_at` is the committer's word; None in what an earlier release worked out.
    """

    branch: str
    head: str
    worked_out_at: datetime
    from_upstream: ShownDistance | None
    from_parent: ShownDistance | None
    own_patches: int
    own_authors: int
    patches_beyond_parent: int
    backports: int
    last_sync: ShownSync | None
    absorbed: tuple[ShownAbsorbed, ...]
    abilities: tuple[Ability, ...]
    problem: str = ""
    committed_at: datetime | None = None

    @property
    def short_head(self) -> str:
        return self.head[:10]


@dataclass(frozen=True)
class ShownScore:
    """How promising a fork is, why, and when that was found; `shut_out` says why it has none."""

    score: float
    reasons: tuple[str, ...]
    shut_out: str
    worked_out_at: datetime


@dataclass(frozen=True)
class ShownFork:
    """A watched engine with its repository; `standing` is None until its head was seen."""

    id: int
    engine: str
    full_name: str
    parent: str | None
    upstream: str | None
    retired: bool
    branches: tuple[str, ...]
    description: str
    stars: int
    archived: bool
    state: str
    pushed_at: datetime | None
    last_seen_at: datetime
    standing: Standing | None
    score: ShownScore | None = None
    latest_release: str = ""


@dataclass(frozen=True)
class OtherFork:
    """A fork that was found and is not watched as an engine."""

    full_name: str
    parent: str | None
    tier: int
    stars: int
    pushed_at: datetime | None
    archived: bool
    state: str
    description: str
    score: ShownScore | None = None


@dataclass(frozen=True)
class ShownIssue:
    """An issue or pull request that somebody wants to hear about."""

    full_name: str
    number: int
    kind: str
    state: str
    title: str
    note: str
    moved_at: datetime | None
    repository_state: str = "known"


@dataclass(frozen=True)
class Forks:
    """Every watched repository, and as many of the others as a page holds."""

    watched: tuple[ShownFork, ...]
    others: tuple[OtherFork, ...]
    others_total: int
    issues: tuple[ShownIssue, ...]


@dataclass(frozen=True)
class ForkDetail:
    """One watched repository with its chain, elders first, and what happened to it lately."""

    fork: ShownFork
    chain: tuple[ShownFork, ...]
    events: tuple[ShownEvent, ...]
    events_total: int
    revisions: tuple[ShownRevision, ...]
    revisions_total: int
    issues: tuple[ShownIssue, ...] = ()
