"""The lists of forks, read in rounds: new ones, broken lists, hostile items."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

from support import github_json as make
from support.scene import BEE, BUUN, TURBO, UPSTREAM, Scene

from jobs.db import reading
from jobs.store import forks


def test_a_new_fork_is_told_once(chain: Scene) -> None:
    """By the newest page, within minutes, with its place in the network."""
    chain.look()
    chain.later(minutes=11)
    chain.github.add(77, "new/fork", parent=BUUN, created_at="2026-05-18T12:05:00Z", stars=3,
                     description="turbo \x1b[31mKV")  # fmt: skip
    assert [each.key for each in chain.look().new] == ["gh:fork:77"]
    event = chain.event("gh:fork:77")
    assert event.title == "new/fork was forked from spiritbuun/buun-llama-cpp"
    assert event.payload["parent_id"] == BUUN
    assert event.payload["root_id"] == UPSTREAM
    assert event.payload["depth"] == 3
    assert event.payload["description"] == "turbo [31mKV"
    assert event.happened_at == datetime(2026, 5, 18, 12, 5, tzinfo=UTC)
    chain.later(days=1)
    assert "gh:fork:77" not in [each.key for each in chain.look().new]


def test_a_fork_of_a_fork_is_told_though_its_parent_had_none(chain: Scene) -> None:
    """The first list of a fork that we watched already is no baseline for what came after."""
    chain.look()
    chain.later(days=1)
    chain.look()
    chain.github.add(88, "deep/fork", parent=BEE, created_at="2026-05-19T13:00:00Z")
    chain.later(days=1, hours=1)
    chain.look()
    assert "gh:fork:88" in chain.told()
    assert chain.row(88).depth == 4


def test_a_fork_made_while_the_first_census_broke_off_is_not_flooded(chain: Scene) -> None:
    """A baseline that needs two rounds is still one baseline."""
    for number in range(150):
        chain.github.add(2000 + number, f"dev{number}/llama.cpp", parent=UPSTREAM,
                         created_at="2026-04-01T00:00:00Z")  # fmt: skip
    chain.github.fail(r"page=2", status=502, body=b"<html>")
    assert chain.look().new == ()
    with reading(chain.database) as session:
        assert 100 <= len(forks.forks_of(session, UPSTREAM)) < 151
    chain.later(minutes=2)
    assert chain.look().new == ()
    with reading(chain.database) as session:
        assert len(forks.forks_of(session, UPSTREAM)) == 151


def test_a_page_size_that_always_fails_is_made_smaller(chain: Scene) -> None:
    """Some pages can never be had whole; quarters of it can."""
    for number in range(150):
        chain.github.add(2000 + number, f"dev{number}/llama.cpp", parent=UPSTREAM)
    chain.github.fail(r"per_page=100&page=2", times=99, status=502, body=b"<html>")
    for _ in range(3):
        chain.look()
        chain.later(minutes=10)
    with reading(chain.database) as session:
        assert len(forks.forks_of(session, UPSTREAM)) == 151


def test_a_partial_list_removes_nothing(chain: Scene) -> None:
    """However often it breaks off: only a list read to its end can miss a fork."""
    chain.look()
    chain.github.fail("forks", times=500, status=502, body=b"<html>")
    for _ in range(6):
        chain.later(days=1, minutes=1)
        chain.look()
    assert chain.row(TURBO).state == "known"
    assert chain.row(TURBO).misses == 0


def test_duplicated_and_reordered_items_are_one_fork_each(chain: Scene) -> None:
    """Pages shift under the reader's feet."""
    chain.github.add(11, "a/llama.cpp", parent=UPSTREAM)
    chain.github.fail(f"{UPSTREAM}/forks", change=lambda page: [*reversed(page), *page])
    assert chain.look().new == ()
    with reading(chain.database) as session:
        assert len(forks.forks_of(session, UPSTREAM)) == 2


def test_hostile_and_headless_items_are_left_out_or_harmless(chain: Scene) -> None:
    """A null owner survives; a name git could not be asked for does not become a row."""

    def spoil(page: list[Any]) -> list[Any]:
        odd = make.repository(13, "x/y")
        bad = {**make.repository(14, "x/y"), "full_name": "--upload-pack=touch/../x"}
        return [*page, {**odd, "owner": None, "pushed_at": None}, bad, {"id": 15}]

    chain.github.fail(f"{UPSTREAM}/forks", change=spoil)
    chain.look()
    assert chain.row(13).facts["owner"] == ""
    with reading(chain.database) as session:
        assert forks.repository(session, 14) is None


def test_a_fork_that_left_the_list_needs_three_whole_censuses(chain: Scene) -> None:
    """And then a day; a tier-3 fork goes without an event."""
    chain.github.add(11, "a/llama.cpp", parent=UPSTREAM)
    chain.look()
    chain.github.remove(11)
    seen = []
    for _ in range(4):
        chain.later(days=1, minutes=1)
        chain.look()
        seen.append((chain.row(11).misses, chain.row(11).state))
    assert seen == [(1, "known"), (2, "known"), (3, "gone"), (3, "gone")]
    assert chain.gone_keys(11) == []
