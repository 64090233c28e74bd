"""Values of fork pages, complete, so that a test names only what it is about."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

from support.rows import NOON, digest

from jobs.store.shown_forks import (
    Ability,
    Beyond,
    ForkDetail,
    ShownAbsorbed,
    ShownDistance,
    ShownFork,
    ShownSync,
    Standing,
)

APART = ShownDistance(41, 14, digest("base")[:40])
SYNC = ShownSync(
    commit=digest("base")[:40],
    upstream_at=datetime(2026, 4, 30, tzinfo=UTC),
    brought_at=datetime(2026, 5, 1, tzinfo=UTC),
    brought_by=digest("merge")[:40],
    method="merge",
)


def standing(**fields: Any) -> Standing:
    """Where a fork of a fork stands."""
    return Standing(
        **{
            "branch": "main",
            "head": digest("head")[:40],
            "worked_out_at": NOON,
            "from_upstream": ShownDistance(360, 229, digest("base")[:40]),
            "from_parent": APART,
            "own_patches": 300,
            "own_authors": 17,
            "patches_beyond_parent": 38,
            "backports": 26,
            "last_sync": SYNC,
            "absorbed": (ShownAbsorbed("buun", 319, 262),),
            "abilities": (Ability("flags", 546, Beyond(1, ("--tree-budget",)), Beyond(0, ())),),
        }
        | fields
    )


def fork(engine: str, parent: str | None = None, **fields: Any) -> ShownFork:
    """A watched repository; the one without a parent is the upstream."""
    root = standing(from_upstream=None, from_parent=None, last_sync=None, absorbed=())
    return ShownFork(
        **{
            "id": int(digest(engine)[:6], 16) + 1,
            "engine": engine,
            "full_name": f"owner/{engine}",
            "parent": parent,
            "upstream": "upstream",
            "retired": False,
            "branches": ("main",),
            "description": "",
            "stars": 0,
            "archived": False,
            "state": "known",
            "pushed_at": NOON,
            "last_seen_at": NOON,
            "standing": standing() if parent else root,
        }
        | fields
    )


def detail(shown: ShownFork, *others: ShownFork) -> ForkDetail:
    """Everything of one page, nothing having happened yet."""
    return ForkDetail(shown, (*others, shown), (), 0, (), 0)
