"""Which fork is worth a look, and why."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from scout.ranking import Fork, GitFacts, order, rank

NOW = datetime(2026, 5, 22, tzinfo=UTC)
BEE = Fork(
    "Anbeeld/beellama.cpp",
    description="DFlash and TurboQuant",
    created_at=datetime(2026, 4, 10, tzinfo=UTC),
    pushed_at=datetime(2026, 5, 21, tzinfo=UTC),
    human_release=True,
)
BEE_GIT = GitFacts(own_vs_upstream=302, own_vs_parent=38, hot_patches=9, own_authors=5,
                   capabilities=("--spec-dflash-cross-ctx",), behind=120)  # fmt: skip


def test_a_refork_does_not_shine_with_its_parents_work() -> None:
    """302 patches beyond upstream and none beyond the parent are nothing of its own."""
    copy = GitFacts(own_vs_upstream=302, own_vs_parent=0)
    own = rank(BEE, BEE_GIT, now=NOW)
    assert own.score > rank(BEE, copy, now=NOW).score + 30
    assert any("38 patches of its own beyond its parent, 302 beyond upstream" in r
               for r in own.reasons)  # fmt: skip


def test_a_fork_nobody_pushed_to_is_shut_out() -> None:
    """Its `pushed_at` is its parent's."""
    born = replace(BEE, pushed_at=BEE.created_at)
    assert rank(born, BEE_GIT, now=NOW).shut_out == "nobody ever pushed to it"
    assert rank(replace(BEE, disabled=True), None, now=NOW).score == 0
    assert rank(replace(BEE, pushed_at=None), None, now=NOW).shut_out


@pytest.mark.parametrize(
    "worse",
    [
        {"only_syncs": True},
        {"only_bots": True},
        {"only_papers": True},
        {"behind": 601},
        {"hot_patches": 0},
        {"capabilities": ()},
        {"own_authors": 0},
        {"own_vs_parent": 1},
    ],
    ids=str,
)
def test_each_fact_of_git_counts(worse: dict[str, object]) -> None:
    """The same fork with one fact worse has a lower score."""
    poorer = rank(BEE, replace(BEE_GIT, **worse), now=NOW)  # type: ignore[arg-type]
    assert poorer.score < rank(BEE, BEE_GIT, now=NOW).score


@pytest.mark.parametrize(
    "worse",
    [
        {"archived": True},
        {"human_release": False},
        {"description": "", "full_name": "a/b"},
        {"pushed_at": NOW - timedelta(days=40)},
    ],
    ids=str,
)
def test_each_fact_of_github_counts(worse: dict[str, object]) -> None:
    """Age has a half-life of two weeks."""
    poorer = rank(replace(BEE, **worse), BEE_GIT, now=NOW)  # type: ignore[arg-type]
    assert poorer.score < rank(BEE, BEE_GIT, now=NOW).score


def test_stars_are_the_smallest_part() -> None:
    """A thousand stars are three points."""
    plain = rank(BEE, BEE_GIT, now=NOW).score
    assert rank(replace(BEE, stars=1000), BEE_GIT, now=NOW).score == pytest.approx(plain + 3)
    assert rank(replace(BEE, references=9), BEE_GIT, now=NOW).score == pytest.approx(plain + 4)


def test_without_git_the_reasons_say_so() -> None:
    """The list page alone gives few points."""
    found = rank(BEE, None, now=NOW)
    assert "git has not looked at it yet" in found.reasons
    assert found.score < 35


@given(
    st.integers(0, 10**6), st.integers(0, 10**6), st.integers(0, 10**6), st.integers(0, 10**6),
    st.booleans(), st.integers(-400, 4000),
)  # fmt: skip
def test_scores_stay_between_0_and_100(
    upstream: int, parent: int, hot: int, stars: int, syncs: bool, days: int
) -> None:
    """Whatever the facts."""
    git = GitFacts(upstream, parent, hot, hot, ("a",) * 9, ("dflash mtp kv",), hot, syncs)
    fork = replace(BEE, stars=stars, references=stars, pushed_at=NOW - timedelta(days=days),
                   created_at=NOW - timedelta(days=5000))  # fmt: skip
    assert 0 <= rank(fork, git, now=NOW).score <= 100


def test_a_parent_nobody_looked_at_is_said() -> None:
    """The fork is scored against upstream, and the reason says that no more is known."""
    found = rank(BEE, replace(BEE_GIT, own_vs_parent=None, parent="a/b"), now=NOW)
    assert any("its parent a/b was not looked at" in reason for reason in found.reasons)


def test_a_fork_whose_size_never_changed_is_shut_out_unless_git_found_work() -> None:
    """Git knows better where it looked; where it did not, nothing is decided."""
    still = replace(BEE, size_changed=False)
    nothing = GitFacts(own_vs_upstream=302, own_vs_parent=0, only_syncs=True)
    assert "its size never changed" in rank(still, nothing, now=NOW).shut_out
    assert rank(still, BEE_GIT, now=NOW).shut_out == ""
    assert rank(still, None, now=NOW).shut_out == ""
    assert rank(BEE, nothing, now=NOW).shut_out == ""


def test_points_add_up() -> None:
    """What is shown of a score is what it is made of."""
    found = rank(BEE, BEE_GIT, now=NOW)
    assert sum(value for value, _ in found.points) == pytest.approx(found.score, abs=0.3)
    assert len(found.points) == len(found.reasons)


def test_order() -> None:
    """Best first, the shut out last."""
    ranks = [rank(replace(BEE, full_name="a/z", pushed_at=None), None, now=NOW),
             rank(replace(BEE, full_name="a/y"), None, now=NOW),
             rank(replace(BEE, full_name="a/x"), BEE_GIT, now=NOW)]  # fmt: skip
    assert [each.full_name for each in sorted(ranks, key=order)] == ["a/x", "a/y", "a/z"]


def test_stored_facts_come_back() -> None:
    """Unknown keys are left alone, none at all is "not looked at"."""
    assert GitFacts.read(None) is None
    assert GitFacts.read({}) is None
    stored = {"own_vs_parent": 3, "capabilities": ["--x"], "later": 1}
    assert GitFacts.read(stored) == GitFacts(own_vs_parent=3, capabilities=("--x",))


def test_one_figure_is_said_once() -> None:
    """Where the parent is upstream, what is beyond the one is beyond the other."""
    same = replace(BEE_GIT, own_vs_upstream=176, own_vs_parent=176, parent="upstream")
    reasons = "; ".join(rank(BEE, same, now=NOW).reasons)
    assert "176 patches of its own beyond its parent upstream" in reasons
    assert reasons.count("176") == 1


def test_a_push_of_today_is_of_today() -> None:
    """Nobody counts 0 days."""
    fresh = replace(BEE, pushed_at=NOW - timedelta(hours=2))
    assert any("last push today" in each for each in rank(fresh, None, now=NOW).reasons)


def test_patches_that_change_no_file_are_called_so() -> None:
    """They touch neither documents nor CI, and are worth as little."""
    empty = replace(BEE_GIT, only_empty=True)
    found = rank(BEE, empty, now=NOW)
    assert "-20 its patches change no file" in found.reasons
    assert found.score < rank(BEE, BEE_GIT, now=NOW).score
