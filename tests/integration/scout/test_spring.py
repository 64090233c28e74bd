"""A generated chain of the real one's shape, replayed day by day from 28 April 2026 on.

What must be told is written down here by hand, day by day; nothing of it is worked out.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from datetime import date, timedelta
from pathlib import Path

import pytest
from sqlalchemy import Engine
from support.hub import Hub
from support.spring import FIRST_DAY, LIST, Spring, noon
from support.watching import Scout

from jobs.tables import EventRow

pytestmark = pytest.mark.needs("git")
TURBO = "feature/turboquant-kv-cache"
TOLD = {
    "2026-04-29": [
        "upstream: master +2, 0 of them forced",
        "upstream: tag b8950 created by CI",
    ],
    "2026-04-30": [
        "buun: master +0, 0 of them forced",
        "buun: merge of upstream, 8 commits",
        "buun: tag b9300 created by CI",
    ],
    "2026-05-01": [],
    "2026-05-02": [
        "turboquant picked 1 pull request of upstream (22010)",
        f"turboquant: {TURBO} +0, 0 of them forced",
        "upstream: master +1, 0 of them forced",
    ],
    "2026-05-04": [
        f"turboquant: {TURBO} +1, 0 of them forced",
        "turboquant: try/fused created",
    ],
    "2026-05-05": [
        "beellama: main +2, 0 of them forced",
        "beellama: merge of upstream, 8 commits",
        "beellama: tag v0.1.0 created by hand",
    ],
    "2026-05-07": [
        "beellama took 1 patch of turboquant (42)",
        "beellama: main +1, 0 of them forced",
    ],
    "2026-05-09": ["turboquant: rebase of upstream, 5 commits"],
    "2026-05-12": ["turboquant: try/fused deleted"],
    "2026-05-14": ["beellama: tag v0.1.0 moved by hand"],
    "2026-05-16": ["upstream: master +1, 0 of them forced"],
    "2026-05-18": ["buun: rebase/upstream-sync-20260518 created"],
    "2026-05-19": [
        "beellama took 1 patch of buun (None)",
        "beellama: main +1, 0 of them forced",
        "buun: master +1, 0 of them forced",
    ],
    "2026-05-21": [
        "beellama: main +1, 1 of them forced",
        "beellama: tag v0.1.2 created by hand",
    ],
    "2026-05-22": ["upstream: master +1, 0 of them forced"],
}
COUNTS = {
    "fork_pushed": 12,
    "upstream_synced": 3,
    "feature_absorbed": 3,
    "tag_created": 4,
    "tag_moved": 1,
    "branch_created": 2,
    "branch_deleted": 1,
}


def line(row: EventRow) -> str:
    """An event as the table above spells it."""
    facts, name = row.payload["facts"], row.title.split(":")[0]
    match row.kind.split("_"):
        case ["fork", "pushed"]:
            branch = facts["ref"].removeprefix("refs/heads/")
            how = f"{int(facts['forced'])} of them forced"
            return f"{name}: {branch} +{facts['new_patches']}, {how}"
        case ["upstream", "synced"]:
            return f"{name}: {facts['method']} of upstream, {facts['absorbed']} commits"
        case ["feature", "absorbed"]:
            return f"{row.title} ({facts['pr']})"
        case ["tag", verb]:
            hand = "CI" if facts["auto_build"] else "hand"
            return f"{name}: tag {facts['tag']} {verb} by {hand}"
        case ["branch", verb]:
            return f"{name}: {facts['ref'].removeprefix('refs/heads/')} {verb}"
    return row.kind


@pytest.fixture
def spring(hub: Hub) -> Spring:
    return Spring(hub)


def replay(spring: Spring, scouts: Sequence[Scout], look: Callable[[], None]) -> None:
    """Live every day, let somebody look, and compare what was told with the table."""
    first = scouts[0]
    known: set[str] = set()
    for day in spring.days:
        spring.live(day)
        for scout in scouts:
            scout.at = noon(day)
        look()
        events = first.events()
        new = [row for key, row in events.items() if key not in known]
        assert sorted(map(line, new)) == TOLD[day.isoformat()], day
        for row in new:
            if row.kind in ("fork_pushed", "upstream_synced"):
                assert row.happened_at is not None
                assert row.happened_at.date() == day
        known |= events.keys()
    assert Counter(row.kind for row in first.events().values()) == COUNTS
    lowly = [row for row in first.events().values() if row.payload["low_priority"]]
    assert [line(row) for row in lowly] == TOLD["2026-05-09"]
    (hot,) = (
        row.payload["facts"]["files_hot"]
        for row in first.events().values()
        if row.payload["facts"].get("files_hot") and row.title.startswith("turboquant")
    )
    assert hot == ["ggml/src/ggml-cuda/turbo.cu"]


def start(scout: Scout) -> None:
    scout.at = noon(FIRST_DAY)
    scout.load(LIST)
    summary = scout.look()
    assert (summary.troubles, summary.new) == ((), ())


def test_the_days_are_all_in_the_table(spring: Spring) -> None:
    """They run from the day after the first to late May."""
    assert [day.isoformat() for day in spring.days] == list(TOLD)
    assert min(spring.days) == FIRST_DAY + timedelta(days=1)
    assert max(spring.days) == date(2026, 5, 22)


def test_each_day_is_told_as_it_was_and_once(
    spring: Spring, sqlite: Engine, tmp_path: Path
) -> None:
    """Pushes, syncs, absorbed work, tags and branches of 24 days; a second look adds nothing."""
    scout = Scout(sqlite, tmp_path)
    start(scout)

    def look() -> None:
        assert scout.look().troubles == ()
        again = scout.look()
        assert (again.troubles, again.new) == ((), ())

    replay(spring, [scout], look)
    fresh = Scout(sqlite, tmp_path / "elsewhere")
    fresh.at = scout.at
    assert fresh.look().new == ()


def test_two_watchers_at_once_tell_each_day_once(
    spring: Spring, database: Engine, tmp_path: Path
) -> None:
    """They look at the same time with a network each; together they say what one says."""
    scouts = [Scout(database, tmp_path / name) for name in ("one", "two")]
    for scout in scouts:
        start(scout)

    with ThreadPoolExecutor(2) as pool:

        def look() -> None:
            summaries = list(pool.map(lambda scout: scout.look(), scouts))
            assert [summary.troubles for summary in summaries] == [(), ()]
            keys = [news.key for summary in summaries for news in summary.new]
            assert len(keys) == len(set(keys))

        replay(spring, scouts, look)
