"""What a job will take, by those that were like it, and how that is said."""

from __future__ import annotations

from datetime import timedelta

import pytest

from jobs import lifecycle
from jobs.estimates import (
    Expectation,
    Past,
    about,
    expectation,
    likely_seconds,
    remaining_seconds,
    said,
    under_way,
)
from jobs.model import Kind, Lane

BENCH = {
    "scenario": "decode-800",
    "context_tokens": 4096,
    "runs": 3,
    "boots": 3,
    "model_file_id": 1,
}


def past(seconds: float, kind: Kind = Kind.BENCH, **payload: object) -> Past:
    return Past(kind, BENCH | payload, seconds)


def test_nothing_like_it_is_not_known() -> None:
    """Another kind says nothing."""
    assert likely_seconds(Kind.BENCH, BENCH, []) is None
    assert likely_seconds(Kind.BENCH, BENCH, [past(9, Kind.BUILD)]) is None


def test_those_most_alike_count_alone() -> None:
    """The same scenario and model before the same scenario, that before any bench."""
    others = [past(9, scenario="ladder"), past(50, model_file_id=2)]
    assert likely_seconds(Kind.BENCH, BENCH, [*others, past(100), past(300)]) == 200
    assert likely_seconds(Kind.BENCH, BENCH, others) == 50
    assert likely_seconds(Kind.BENCH, BENCH, others[:1]) == 9


def test_only_the_newest_count() -> None:
    """A faster machine is believed after some jobs, not after all of them."""
    assert likely_seconds(Kind.BENCH, BENCH, [past(10)] * 20 + [past(500)] * 100) == 10


def test_one_odd_job_does_not_move_the_estimate() -> None:
    """The middle, not the mean."""
    assert likely_seconds(Kind.BUILD, {}, [past(s, Kind.BUILD) for s in (60, 61, 9000)]) == 61


@pytest.mark.parametrize(
    ("seconds", "words"),
    [
        (20, "under a minute"),
        (400, "about 7 min"),
        (1600, "about 25 min"),
        (3 * 3600 + 500, "about 3 h"),
        (4 * 86400, "about 4 days"),
    ],
)
def test_spans_are_said_as_coarse_as_they_are_known(seconds: float, words: str) -> None:
    """Never to the second."""
    assert about(timedelta(seconds=seconds)) == words


def test_what_is_not_known_stays_so() -> None:
    """An unknown wait hides the end too; an unknown job of its own hides the end alone."""
    assert said(expectation(wait_seconds=None, own_seconds=60)) == "not known"
    assert said(expectation(wait_seconds=600, own_seconds=None)) == "starts in about 10 min"
    both = expectation(wait_seconds=0, own_seconds=1800)
    assert said(both) == "starts soon, done in about 30 min"


def test_a_running_job_only_ends() -> None:
    """It is not said to start; one of unknown length ends no one knows when."""
    assert said(under_way(1500)) == "done in about 25 min"
    assert said(under_way(None)) == "not known"
    assert said(under_way(remaining_seconds(60, 600))) == "done in under a minute"


def test_a_due_time_is_waited_for() -> None:
    """However free the workers are."""
    found = expectation(wait_seconds=5, own_seconds=10, least_wait_seconds=100)
    assert found == Expectation(timedelta(seconds=100), timedelta(seconds=110))


def test_lanes_are_climbed_up_to_fresh() -> None:
    """One at a time; what people asked for and confirmations stay before all that aged."""
    assert lifecycle.lane_above(Lane.BACKFILL) is Lane.RETEST
    assert lifecycle.lane_above(Lane.RETEST) is Lane.FRESH
    for lane in (Lane.FRESH, Lane.CONFIRM, Lane.ON_DEMAND):
        assert lifecycle.lane_above(lane) is None


def test_who_uses_just_its_share_is_not_over_it() -> None:
    """And where nobody used anything, nobody is."""
    assert lifecycle.over_share({"a": 5, "b": 5}, 0.5) == frozenset()
    assert lifecycle.over_share({"a": 6, "b": 4}, 0.5) == {"a"}
    assert lifecycle.over_share({"a": 0.0}, 0.5) == frozenset()


def test_a_bench_in_turns_takes_as_long_as_both() -> None:
    """Twice a bench alone, until one in turns is known; neither counts as the other."""
    turns = {"against": {"revision_id": 3, "build_identity": "b"}}
    assert likely_seconds(Kind.BENCH, BENCH | turns, [past(100)]) == 200
    both = [past(250, **turns), past(100)]
    assert likely_seconds(Kind.BENCH, BENCH | turns, both) == 250
    assert likely_seconds(Kind.BENCH, BENCH | {"against": None}, both) == 100
    assert likely_seconds(Kind.BENCH, BENCH | turns, []) is None
