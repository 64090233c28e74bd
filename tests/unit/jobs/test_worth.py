"""What a bench is worth, and what a budget keeps."""

from __future__ import annotations

from datetime import timedelta

from hypothesis import given
from hypothesis import strategies as st
from support.rows import NOON
from support.worlds import pushed

from jobs.planning.world import Budget, SeriesPast
from jobs.planning.worth import Wanted, value_of, within_budget

NEVER = SeriesPast()


def value(past=NEVER, event=None, **fields):
    return value_of(event or pushed(), past, now=NOON, **fields)


def measured(last, best, days=0.0):
    return SeriesPast(frozenset({1}), last, best, NOON - timedelta(days=days))


def test_a_series_near_the_record_is_worth_more():
    """A record is in reach there, and a regression is seen by everybody."""
    assert value(measured(99, 100)) > value(measured(60, 100))


def test_what_was_measured_long_ago_is_worth_more():
    """Up to a bound: a year is no more stale than a month."""
    assert value(measured(60, 100, days=10)) > value(measured(60, 100, days=1))
    assert value(measured(60, 100, days=365)) == value(measured(60, 100, days=30))


def test_a_larger_change_is_worth_more():
    """Files that matter, what an engine can do now, and a rebase that brought nothing."""
    idle = value(event=pushed(low_priority=True))
    plain = value(event=pushed())
    hot = value(event=pushed(facts={"files_hot": ["ggml/src/ggml-cuda/a.cu"] * 3}))
    new = value(event=pushed(kind="fork_capability_changed"))
    assert idle < plain < hot < new


def test_failures_and_further_scenarios_make_it_less():
    """Half for each failure; the second scenario of a stack tells half as much."""
    assert value(failures=2) == value() / 4
    assert value(place=2) == value() / 2


@given(
    last=st.floats(0.1, 1000),
    best=st.floats(0.1, 1000),
    days=st.floats(-10, 1000),
    place=st.integers(1, 50),
    failures=st.integers(0, 50),
)
def test_a_value_is_a_share(last, best, days, place, failures):
    """Whatever history says."""
    found = value(measured(last, best, days), place=place, failures=failures)
    assert 0 <= found <= 1


wanted = st.builds(
    Wanted,
    identity=st.uuids().map(str),
    rig=st.sampled_from(["a", "b"]),
    source=st.sampled_from(["engine:x", "engine:y"]),
    value=st.floats(0, 1),
    seconds=st.none() | st.floats(1, 10_000),
)
budgets = st.lists(
    st.builds(Budget, seconds=st.floats(0, 20_000), spent=st.floats(0, 20_000), rig=st.just("a"))
    | st.builds(Budget, seconds=st.floats(0, 20_000), source=st.just("engine:x")),
    max_size=2,
    unique_by=lambda each: each.name,
)


@given(st.lists(wanted, max_size=20, unique_by=lambda each: each.identity), budgets)
def test_no_budget_is_ever_overdrawn(sweep, held):
    """And what no budget covers always stays."""
    cut = within_budget(sweep, held)
    for budget in held:
        kept = [
            each.cost
            for each in sweep
            if each.identity not in cut and budget.covers(rig=each.rig, source=each.source)
        ]
        assert sum(kept) <= budget.left + 1e-6
    for each in sweep:
        if not any(budget.covers(rig=each.rig, source=each.source) for budget in held):
            assert each.identity not in cut


def test_the_least_valuable_goes_first():
    """Of two that cost the same and of which one fits."""
    sweep = [Wanted(name, "a", "", worth, 600) for name, worth in (("low", 0.1), ("high", 0.9))]
    assert set(within_budget(sweep, [Budget(700, rig="a")])) == {"low"}
