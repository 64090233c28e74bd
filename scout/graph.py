"""The commit graph of a fork network in memory; pure walks over it, and no git.

Commits arrive children first, so that a parent always has a higher position than its child.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence, Set
from dataclasses import dataclass

from jobs.git_history import CommitFacts

PULL_REQUEST = re.compile(r"\(#\d{5,}\)$")
"""How upstream's squash merges end; forks that cherry-pick one keep its subject."""

Triple = tuple[str, int, str]
"""Author, author's time and subject: what a rebase and a cherry-pick keep."""

Reach = bytearray
"""One byte for each commit of the graph: whether it is reached."""


@dataclass(frozen=True)
class Distance:
    """How a head stands to a base; nothing is counted where they share no commit."""

    ahead: int | None
    behind: int | None
    merge_base: str | None


class Graph:
    """Every commit once; questions are asked with full shas, unknown ones count as nothing."""

    def __init__(self, commits: Iterable[CommitFacts], *, left_out: Iterable[int] = ()) -> None:
        self.left_out = frozenset(left_out)
        """Repositories that were too large to be read along."""
        self._commits = list(commits)
        self._position = {commit.sha: at for at, commit in enumerate(self._commits)}
        find = self._position.get
        self._parents = [
            tuple(at for sha in commit.parents if (at := find(sha)) is not None)
            for commit in self._commits
        ]

    def __len__(self) -> int:
        return len(self._commits)

    def knows(self, sha: str | None) -> bool:
        """Whether the graph holds this commit."""
        return sha in self._position

    @property
    def shas(self) -> Set[str]:
        """All commits it holds."""
        return self._position.keys()

    def commit(self, sha: str) -> CommitFacts:
        """The facts of a commit the graph holds."""
        return self._commits[self._position[sha]]

    def reach(self, tips: Iterable[str]) -> Reach:
        """All that these commits stand on, themselves included."""
        marks = bytearray(len(self._commits))
        self._mark(marks, self._known(tips))
        return marks

    def beyond(self, tips: Iterable[str], base: Reach) -> list[CommitFacts]:
        """What the tips stand on and `base` does not hold, children first."""
        return [self._commits[at] for at in sorted(self._beyond(self._known(tips), base))]

    def within(self, base: Reach) -> list[CommitFacts]:
        """What a walk reached, children first."""
        return [commit for commit, reached in zip(self._commits, base, strict=True) if reached]

    def holds(self, base: Reach, sha: str | None) -> bool:
        """Whether a walk reached this commit."""
        at = self._position.get(sha or "")
        return at is not None and bool(base[at])

    def distance(self, head: str, base: Reach, base_count: int) -> Distance:
        """Ahead, behind and the newest best common ancestor, given what the base reaches."""
        own = self._beyond(self._known([head]), base)
        common = self._border(head, own)
        below = bytearray(len(self._commits))
        self._mark(below, [parent for at in common for parent in self._parents[at]])
        best = [at for at in common if not below[at]]
        shared = sum(below) + len(best)
        newest = max(best, key=lambda at: self._commits[at].committed_at, default=None)
        if newest is None:
            return Distance(None, None, None)
        return Distance(len(own), base_count - shared, self._commits[newest].sha)

    def first_parents(self, head: str) -> list[str]:
        """The head's own line, newest first."""
        line: list[str] = []
        at = self._position.get(head)
        while at is not None:
            line.append(self._commits[at].sha)
            at = next(iter(self._parents[at]), None) if self._has_first_parent(at) else None
        return line

    def containing(self, sha: str, among: Iterable[CommitFacts]) -> set[str]:
        """Which of these commits stand on `sha`; they must include every commit in between."""
        holders = {sha}
        for commit in sorted(among, key=lambda each: self._position[each.sha], reverse=True):
            if not holders.isdisjoint(commit.parents):
                holders.add(commit.sha)
        return holders

    def _has_first_parent(self, at: int) -> bool:
        parents = self._commits[at].parents
        return bool(parents) and parents[0] in self._position

    def _known(self, tips: Iterable[str]) -> list[int]:
        return [at for tip in tips if (at := self._position.get(tip)) is not None]

    def _mark(self, marks: Reach, stack: list[int]) -> None:
        parents = self._parents
        while stack:
            at = stack.pop()
            if not marks[at]:
                marks[at] = 1
                stack.extend(parents[at])

    def _beyond(self, stack: list[int], base: Reach) -> set[int]:
        own: set[int] = set()
        while stack:
            at = stack.pop()
            if not base[at] and at not in own:
                own.add(at)
                stack.extend(self._parents[at])
        return own

    def _border(self, head: str, own: set[int]) -> set[int]:
        """Commits of the base on which own commits stand; the head itself where it has none."""
        if not own:
            return set(self._known([head]))
        return {parent for at in own for parent in self._parents[at] if parent not in own}


def triple(commit: CommitFacts) -> Triple:
    """What stays of a commit when it is rebased."""
    return (commit.author, commit.authored_at, commit.subject)


def patches(commits: Iterable[CommitFacts]) -> list[CommitFacts]:
    """Commits that change something by themselves and are no pull request of upstream."""
    return [
        commit
        for commit in commits
        if len(commit.parents) < 2 and not PULL_REQUEST.search(commit.subject)
    ]


def changes(commits: Iterable[CommitFacts]) -> list[CommitFacts]:
    """Commits that are no merges."""
    return [commit for commit in commits if len(commit.parents) < 2]


def triples(commits: Sequence[CommitFacts]) -> frozenset[Triple]:
    """Each patch once, however often it was rebased."""
    return frozenset(map(triple, commits))
