"""How promising a fork is, 0 to 100, and why in words; pure, what git knows comes in as a value."""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Self

from jobs.terminal import counted

PATCH_POINTS, PATCH_CAP = 25, 64
"""Patches beyond so many add nothing: a fork with more is no better for it."""
HOT_POINTS, HOT_CAP = 15, 8
CAPABILITY_POINTS, CAPABILITY_CAP = 20, 4
KEYWORD_POINTS, KEYWORD_CAP = 10, 4
RECENCY_POINTS, RECENCY_HALF_LIFE_DAYS = 10, 14
RELEASE_POINTS = 8
AUTHOR_POINTS, AUTHORS_WANTED = 5, 2
REFERENCE_POINTS, REFERENCE_CAP = 4, 4
STAR_POINTS, STAR_CAP = 3, 1000
FAR_BEHIND = 600
SYNC_PENALTY, BOT_PENALTY, PAPER_PENALTY, BEHIND_PENALTY, ARCHIVED_PENALTY = 30, 20, 20, 15, 25
KEYWORDS = (
    *("dflash", "mtp", "turbo", "tcq", "kv", "spec", "draft"),
    *("sm_120", "blackwell", "fattn", "nvfp4"),
)


@dataclass(frozen=True)
class GitFacts:
    """What a fork's own history says, against upstream and against its direct parent.

    `own_vs_parent` is None where the parent was not looked at; `branch` is where the work is.
    Where it is `unrelated` to upstream, its patches are all that it has, and are worth nothing.
    """

    own_vs_upstream: int = 0
    own_vs_parent: int | None = 0
    hot_patches: int = 0
    own_authors: int = 0
    capabilities: tuple[str, ...] = ()
    subjects: tuple[str, ...] = ()
    behind: int | None = None
    unrelated: bool = False
    only_syncs: bool = False
    only_bots: bool = False
    only_papers: bool = False
    only_empty: bool = False
    branch: str = ""
    head: str = ""
    parent: str = ""
    human_tag: str = ""

    @property
    def own(self) -> int:
        """Patches that are nobody else's, as far as it is known."""
        if self.own_vs_parent is None:
            return self.own_vs_upstream
        return min(self.own_vs_upstream, self.own_vs_parent)

    @classmethod
    def read(cls, stored: Mapping[str, Any] | None) -> Self | None:
        """The facts a row keeps; None where git has not looked at the fork yet."""
        if not stored:
            return None
        known = {name: stored[name] for name in cls.__dataclass_fields__ if name in stored}
        for name in ("capabilities", "subjects"):
            if name in known:
                known[name] = tuple(map(str, known[name]))
        return cls(**known)


@dataclass(frozen=True)
class Fork:
    """What GitHub's list shows of a fork."""

    full_name: str
    description: str = ""
    stars: int = 0
    created_at: datetime | None = None
    pushed_at: datetime | None = None
    archived: bool = False
    disabled: bool = False
    human_release: bool = False
    references: int = 0
    size_changed: bool = True


@dataclass(frozen=True)
class Rank:
    """A score with its reasons; `shut_out` says why a fork was not scored at all."""

    full_name: str
    score: float
    reasons: tuple[str, ...]
    shut_out: str = ""
    points: tuple[tuple[float, str], ...] = ()


def rank(fork: Fork, git: GitFacts | None, *, now: datetime) -> Rank:
    """The score of one fork."""
    if shut_out := gate(fork, git):
        return Rank(fork.full_name, 0.0, (), shut_out)
    points = [*_from_github(fork, git, now), *(_from_git(git) if git else ())]
    if git is None:
        points.append((0.0, "git has not looked at it yet"))
    total = sum(value for value, _ in points)
    points = [(round(value, 1), why) for value, why in points]
    points.sort(key=lambda each: -abs(each[0]))
    reasons = tuple(f"{value:+.0f} {why}" if round(value) else why for value, why in points)
    score = round(min(max(total, 0.0), 100.0), 1)
    return Rank(fork.full_name, score, reasons, points=tuple(points))


def order(found: Rank) -> tuple[bool, float, str]:
    """Sorts the highest score first, then by name; those shut out come last."""
    return (bool(found.shut_out), -found.score, found.full_name)


def gate(fork: Fork, git: GitFacts | None = None) -> str:
    """Why a fork cannot be worth a look, or nothing."""
    if fork.disabled:
        return "disabled by GitHub"
    if fork.pushed_at is None or fork.created_at is None:
        return "nothing is known of its pushes"
    if fork.pushed_at <= fork.created_at:
        return "nobody ever pushed to it"
    if git is not None and not git.own and not fork.size_changed:
        return "its size never changed, and git found nothing of its own"
    return ""


def _from_github(fork: Fork, git: GitFacts | None, now: datetime) -> Iterable[tuple[float, str]]:
    days = max((now - (fork.pushed_at or now)).total_seconds() / 86400, 0.0)
    recency = RECENCY_POINTS * 0.5 ** (days / RECENCY_HALF_LIFE_DAYS)
    when = f"{counted(round(days), 'day')} ago" if round(days) else "today"
    yield recency, f"last push {when}"
    text = "\n".join([fork.full_name, fork.description, *(git.subjects if git else ())]).lower()
    hits = [word for word in KEYWORDS if re.search(rf"(?<![a-z0-9]){word}", text)]
    if hits:
        share = min(len(hits), KEYWORD_CAP) / KEYWORD_CAP
        yield KEYWORD_POINTS * share, f"speaks of {', '.join(hits)}"
    if fork.human_release:
        yield RELEASE_POINTS, "a tag or release made by a person, or with files"
    if fork.references:
        share = min(fork.references, REFERENCE_CAP) / REFERENCE_CAP
        yield REFERENCE_POINTS * share, f"named in {counted(fork.references, 'other place')}"
    if fork.stars:
        share = _log_share(fork.stars, STAR_CAP)
        yield STAR_POINTS * share, counted(fork.stars, "star")
    if fork.archived:
        yield -ARCHIVED_PENALTY, "archived"


def _from_git(git: GitFacts) -> Iterable[tuple[float, str]]:
    if git.unrelated:
        yield 0.0, "nothing in common with upstream: its commits cannot be held against it"
    else:
        yield PATCH_POINTS * _log_share(git.own, PATCH_CAP), _own_patches(git)
    if git.hot_patches:
        share = min(git.hot_patches, HOT_CAP) / HOT_CAP
        yield (
            HOT_POINTS * share,
            f"{counted(git.hot_patches, 'patch', 'patches')} in what makes it fast",
        )
    if git.capabilities:
        share = min(len(git.capabilities), CAPABILITY_CAP) / CAPABILITY_CAP
        yield (
            CAPABILITY_POINTS * share,
            f"can what others cannot: {', '.join(git.capabilities[:6])}",
        )
    if git.own_authors:
        share = min(git.own_authors, AUTHORS_WANTED) / AUTHORS_WANTED
        yield AUTHOR_POINTS * share, f"{counted(git.own_authors, 'author')} of its own"
    if git.only_syncs:
        yield -SYNC_PENALTY, "only follows its parent"
    if git.only_bots:
        yield -BOT_PENALTY, "only bots write to it"
    if git.only_empty:
        yield -PAPER_PENALTY, "its patches change no file"
    if git.only_papers:
        yield -PAPER_PENALTY, "only touches documents and CI"
    if git.behind is not None and git.behind > FAR_BEHIND:
        yield -BEHIND_PENALTY, f"{counted(git.behind, 'commit')} behind upstream"


def _own_patches(git: GitFacts) -> str:
    parent = f"its parent {git.parent}" if git.parent else "its parent"
    if git.own_vs_parent is None:
        patches = counted(git.own_vs_upstream, "patch", "patches")
        return f"{patches} beyond upstream; {parent} was not looked at"
    own = f"{counted(git.own_vs_parent, 'patch', 'patches')} of its own beyond {parent}"
    if git.own_vs_parent == git.own_vs_upstream:
        return own
    return f"{own}, {git.own_vs_upstream} beyond upstream"


def _log_share(count: int, cap: int) -> float:
    return min(math.log2(1 + max(count, 0)) / math.log2(1 + cap), 1.0)
