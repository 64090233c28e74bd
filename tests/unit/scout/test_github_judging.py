"""What lists of GitHub mean, whatever strangers put in them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from support import github_json as make

from scout.github import forks, issues, pulls, releases
from scout.github.base import Repo
from scout.github.forks import Census, read_items
from scout.github.governor import Tier
from scout.github.lists import Interest, ListSource, Seen
from scout.github.repository_facts import Before, changes, is_gone, read_facts

NOW = datetime(2026, 5, 18, 12, 0, tzinfo=UTC)
REPO = Repo(612354784, "ggml-org/llama.cpp", Tier.CHAIN, watched_since=NOW)
NAMES = """
id number full_name owner login head repo sha base ref state title created_at updated_at
published_at closed_at merged_at pull_request assets digest draft archived size
"""
KEYS = st.sampled_from(NAMES.split())
TEXTS = st.text(max_size=8) | st.sampled_from(["2026-05-18T13:00:00Z", "closed", "a/b", "f" * 40])
JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | TEXTS,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(KEYS, inner, max_size=6),
    max_leaves=20,
)
ITEMS = st.lists(st.dictionaries(KEYS, JSON, max_size=10), max_size=4)
LISTS: list[ListSource] = [releases, pulls, issues]


def seen(cursor: Mapping[str, Any], items: Sequence[Mapping[str, Any]]) -> Seen:
    return Seen(REPO, cursor, items, Interest(frozenset({1}), frozenset({1, 2})), NOW)


@pytest.mark.parametrize("source", LISTS, ids=lambda source: source.NAME)
@given(first=ITEMS, second=ITEMS)
@settings(deadline=None, max_examples=150)
def test_no_item_can_upset_a_judge(source: ListSource, first: Any, second: Any) -> None:
    """Any JSON objects: the first look tells nothing, every title and key is one line of text."""
    judged = source.judge(seen({}, first))
    assert judged.news == ()
    source.reached(judged.cursor, second)
    for happening in source.judge(seen(judged.cursor, second)).news:
        assert happening.key.isprintable()
        assert happening.key.startswith("gh:")


@given(ITEMS)
@settings(deadline=None)
def test_no_item_can_upset_the_census(items: Any) -> None:
    """What has no id and no usable name is left out, each id comes once."""
    found = read_items(items)
    assert len({facts.github_id for facts in found}) == len(found)
    assert all("/" in facts.full_name for facts in found)


@pytest.mark.parametrize(
    ("changes", "human"),
    [
        ({}, "v1"),
        ({"tag_name": "b9326"}, ""),
        ({"tag_name": "main-b9351-4db14be"}, ""),
        ({"tag_name": "b9326", "assets": [make.asset(5, "x.zip")]}, "b9326"),
        ({"author": {"login": "github-actions[bot]"}}, ""),
        ({"author": None}, "v1"),
        ({"draft": True}, ""),
    ],
    ids=str,
)
def test_a_release_of_a_person_is_remembered(changes: dict[str, Any], human: str) -> None:
    """Not a build's tag and no bot's, unless it brings files; also at the first look."""
    item = {**make.release(1, "v1", "2026-05-18T13:00:00Z"), **changes}
    first = releases.judge(seen({}, [item]))
    assert first.cursor["human"] == human
    assert releases.judge(seen(first.cursor, [])).cursor["human"] == human


def test_the_same_look_twice_is_no_news() -> None:
    """Judging is a function of what was seen and what was remembered."""
    items = [make.release(1, "b1", "2026-05-18T13:00:00Z", assets=[make.asset(5, "x.zip")])]
    base = releases.judge(seen({}, []))
    once = releases.judge(seen(base.cursor, items))
    assert [each.kind for each in once.news] == ["release_published"]
    assert releases.judge(seen(once.cursor, [*items, *items])).news == ()


def test_reopened_twice_are_two_events() -> None:
    """The closing that a reopening undoes is part of its key."""
    cursor, keys = issues.judge(seen({}, [])).cursor, []
    for hour in (13, 15):
        closed = make.issue(35, "a/b", f"2026-05-18T{hour}:00:00Z", state="closed",
                            closed_at=f"2026-05-18T{hour}:00:00Z")  # fmt: skip
        opened = make.issue(35, "a/b", f"2026-05-18T{hour + 1}:00:00Z")
        for item in (closed, opened):
            judged = issues.judge(seen(cursor, [item]))
            cursor, keys = judged.cursor, [*keys, *(each.key for each in judged.news)]
    assert len(set(keys)) == 4


def test_gone_needs_three_misses_and_a_day() -> None:
    """Neither alone is enough."""
    assert not is_gone(200, NOW - timedelta(hours=23), NOW)
    assert not is_gone(2, NOW - timedelta(days=9), NOW)
    assert is_gone(3, NOW - timedelta(hours=24), NOW)


def test_a_change_of_name_and_branch_are_two_events() -> None:
    """Each with its own key."""
    facts = read_facts(make.repository(7, "new/name", default_branch="main"))
    assert facts is not None
    news = changes(Before("old/name", "master", archived=False, state="known"), facts, moved=True)
    assert [each.key for each in news] == [
        "gh:repo:7:renamed:new/name",
        "gh:repo:7:default_changed:main",
    ]
    assert news[0].payload["status"] == 301


def test_a_census_goes_on_where_it_stopped() -> None:
    """Its state survives as JSON; three days later it begins anew."""
    census = Census(NOW).after()
    kept = {"census": census.as_json()}
    assert Census.read(kept, NOW + timedelta(days=1)) == census
    assert Census.read(kept, NOW + timedelta(days=3)).number == 1
    before = NOW - timedelta(hours=1)  # our clock was wrong: since then nobody can have been seen
    assert Census.read(kept, before) == Census(before)
    quarter = census.after_failure().after_failure()
    assert quarter.page(REPO).params == {"sort": "oldest", "per_page": "25", "page": "5"}
    assert forks.CENSUS_TIER is Tier.EVERYTHING
