"""Copies that are no forks on paper: found by name once a day, told once, kept apart."""

from __future__ import annotations

from typing import Any

import pytest
from sqlalchemy import Engine
from support import github_json as make
from support.scene import BUUN, UPSTREAM, Scene

from jobs.db import reading
from jobs.store import forks
from jobs.store.forks import repository
from scout.github import search


@pytest.fixture
def database(sqlite: Engine) -> Engine:
    """One kind of database: what is asked and judged does not depend on it."""
    return sqlite


def look(scene: Scene, **how: Any) -> Any:
    return scene.look("github_search", **how)


def searched(scene: Scene) -> list[str]:
    return [each.path for each in scene.github.asked if each.bucket == "search"]


def known(scene: Scene, github_id: int) -> bool:
    with reading(scene.database) as session:
        return repository(session, github_id) is not None


@pytest.fixture
def network(chain: Scene) -> Scene:
    """A chain that is known, and one old copy of llama.cpp outside of it."""
    chain.github.add(500, "old/my-llama.cpp", created_at="2026-01-01T00:00:00Z",
                     pushed_at="2026-05-10T00:00:00Z", stars=3)  # fmt: skip
    chain.look()
    chain.github.asked.clear()
    chain.later(days=1, minutes=1)
    return chain


def test_the_first_search_is_a_baseline(network: Scene) -> None:
    """What is there already makes a row and no event; a fork and what we watch are left alone."""
    assert not any(key.startswith("gh:copy:") for key in network.told())
    row = network.row(500)
    assert row.facts["unlinked"] is True
    assert (row.tier, row.parent_github_id, row.depth) == (2, None, None)
    assert "unlinked" not in network.row(UPSTREAM).facts
    assert network.row(BUUN).parent_github_id is not None


def test_a_copy_is_told_once(network: Scene) -> None:
    """Though two names find it."""
    network.github.add(501, "new/buun-llama-cpp-llama.cpp", created_at="2026-05-19T00:00:00Z",
                       pushed_at="2026-05-19T01:00:00Z", description="turbo \x1b[2J")  # fmt: skip
    found = look(network)
    assert [each.key for each in found.new] == ["gh:copy:501"]
    event = network.event("gh:copy:501")
    assert event.kind == "copy_found"
    assert event.title == "new/buun-llama-cpp-llama.cpp is named like llama.cpp and is no fork"
    assert event.payload["description"] == "turbo [2J"
    network.later(days=1, minutes=1)
    assert look(network).new == ()


def test_what_the_watch_list_gives_is_searched_for() -> None:
    """Families and own names, each once; words that mean something else to a search are not."""
    names = [
        each.name
        for each in search.searches(
            ["llama.cpp"], ["ggml-org/Llama.cpp", "a/buun-llama-cpp", "b/NOT", "c/x", "d/AND"]
        )
    ]
    assert names == ["llama.cpp", "buun-llama-cpp"]
    many = [f"a/engine-{number}" for number in range(100)]
    assert len(search.searches(["llama.cpp"], many)) == search.MOST_NAMES


def test_it_is_asked_once_a_day(network: Scene) -> None:
    """Also where `scout up` looks every few minutes."""
    look_once = network.look()
    assert look_once.requests
    assert len(searched(network)) == 2
    assert "pushed%3A%3E2026-03-20" in searched(network)[0]
    network.later(hours=23)
    network.look()
    assert len(searched(network)) == 2


def test_further_pages_are_read_with_an_end(network: Scene) -> None:
    """A thousand results are ten pages; the last moved of them are enough for a day."""
    for number in range(230):
        network.github.add(1000 + number, f"dev{number}/llama.cpp",
                           pushed_at="2026-05-01T00:00:00Z")  # fmt: skip
    look(network)
    assert len([path for path in searched(network) if "page=3" in path]) == 1
    assert known(network, 1229)


def test_a_list_that_github_cut_short_is_no_baseline(chain: Scene) -> None:
    """What it holds is kept in silence, and the search counts as not answered."""
    chain.github.add(500, "old/my-llama.cpp", pushed_at="2026-05-10T00:00:00Z")
    chain.github.fail("search", times=9, change=lambda body: {**body, "incomplete_results": True})
    found = look(chain)
    assert found.troubles[0].endswith(": GitHub searched only a part")
    assert found.new == ()
    assert known(chain, 500)
    chain.github.faults.clear()
    chain.github.add(501, "other/llama.cpp", pushed_at="2026-05-11T00:00:00Z")
    chain.later(minutes=2)
    assert look(chain).new == ()
    assert known(chain, 501)


HOSTILE: dict[str, dict[str, Any]] = {
    "a fork": {"fork": True},
    "private": {"private": True},
    "no id": {"id": None},
    "an option for a name": {"full_name": "--upload-pack=touch/../x"},
    "an address for a name": {"full_name": "https://github.com@127.0.0.1/x"},
    "nobody says whether it is a fork": {"fork": None},
}


@pytest.mark.parametrize("change", HOSTILE.values(), ids=HOSTILE.keys())
def test_items_that_are_no_copies_are_left_out(network: Scene, change: dict[str, Any]) -> None:
    """And stop no other item of the page."""
    odd = {**make.repository(600, "odd/llama.cpp", pushed_at="2026-05-18T00:00:00Z"), **change}
    good = make.repository(601, "good/llama.cpp", pushed_at="2026-05-18T00:00:00Z", owner=None)
    network.github.fail("search", change=lambda body: {**body, "items": [odd, None, 7, good]})
    look(network)
    assert not known(network, 600)
    assert known(network, 601)


@pytest.mark.parametrize(
    "fault",
    [
        {"status": 422},
        {"status": 404},
        {"status": 502, "body": b"<html>"},
        {"change": lambda body: {**body, "items": {"a": 1}}},
        {"change": lambda body: body["items"]},
        {"body": b'{"errors": [{"type": "RATE_LIMITED"}], "data": null}'},
    ],
)
def test_a_search_without_an_answer_changes_nothing(network: Scene, fault: dict[str, Any]) -> None:
    """It is asked again later, and nothing is gone."""
    network.github.fail("search", times=9, **fault)
    found = look(network)
    assert found.new == ()
    assert len(found.troubles) == 2
    assert network.row(500).state == forks.KNOWN
    assert network.row(500).misses == 0


def test_its_thirty_a_minute_are_its_own(network: Scene) -> None:
    """An empty bucket of searches stops searches, for a minute, and nothing else."""
    network.github.fail("search", times=9, status=403, headers={"X-RateLimit-Remaining": "0"})
    found = network.look()
    assert len(searched(network)) == 1
    assert any(each.startswith("github_search: ") for each in found.waiting)
    assert sum(each.bucket == "core" for each in network.github.asked) > 5


def test_forks_of_a_copy_are_not_counted(network: Scene) -> None:
    """A name alike may belong to a project with thousands of forks."""
    network.github.repos[500]["forks_count"] = 900
    look(network, force=True)
    network.later(days=1, minutes=1)
    network.github.asked.clear()
    network.look()
    assert not any("/repositories/500/" in each.path for each in network.github.asked)
