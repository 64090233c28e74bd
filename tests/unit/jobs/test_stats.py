"""The statistics against slow, obvious versions and closed forms."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import t as student

from jobs import stats


def test_the_median_of_nothing_is_refused() -> None:
    """No number is invented for an empty list."""
    with pytest.raises(ValueError, match="nothing"):
        stats.median([])


def test_without_history_the_assumed_spread_stands() -> None:
    """One boot a build teaches nothing about boot-to-boot spread."""
    spread = stats.boot_spread([[70.0], [71.0]])
    assert spread.sd == pytest.approx(stats.PRIOR_BOOT_SD)
    assert spread.dof == stats.PRIOR_WEIGHT


def test_spread_is_pooled_over_builds_not_over_levels() -> None:
    """Two builds at different levels, each without spread, add no spread."""
    spread = stats.boot_spread([[50.0, 50.0, 50.0], [100.0, 100.0, 100.0]])
    assert spread.sd < stats.PRIOR_BOOT_SD
    assert spread.dof == stats.PRIOR_WEIGHT + 4


def test_spread_approaches_the_truth_with_history() -> None:
    """Sixty builds of three boots at 4 % give 4 % back."""
    draw = np.random.default_rng(7)
    groups = [list(70 * np.exp(draw.normal(0, 0.04, 3))) for _ in range(60)]
    assert stats.boot_spread(groups).sd == pytest.approx(0.04, rel=0.15)


def test_the_interval_is_the_textbook_one() -> None:
    """Half-width t(0.995) s sqrt(1/n + 1/m) on the log scale, by hand."""
    spread = stats.Spread(0.02, 10)
    found = stats.difference([110.0, 110.0], [100.0, 100.0, 100.0], spread)
    half = float(student.ppf(0.995, 10)) * 0.02 * math.sqrt(1 / 2 + 1 / 3)
    assert found.effect == pytest.approx(0.10)
    assert found.low == pytest.approx(1.10 * math.exp(-half) - 1)
    assert found.high == pytest.approx(1.10 * math.exp(half) - 1)
    assert found.resolution == pytest.approx(math.exp(half) - 1)


def test_false_alarms_stay_near_one_in_a_hundred() -> None:
    """Equal builds of three boots, spread learned from twenty builds: about 1 % outside."""
    draw = np.random.default_rng(11)
    outside = 0
    for _ in range(2000):
        history = [list(np.exp(draw.normal(4, 0.03, 3))) for _ in range(20)]
        a, b = (list(np.exp(draw.normal(4, 0.03, 3))) for _ in range(2))
        found = stats.difference(a, b, stats.boot_spread(history))
        outside += found.low > 0 or found.high < 0
    assert 0.003 <= outside / 2000 <= 0.03


@pytest.mark.parametrize(
    ("runs", "falls"),
    [
        ([3.40, 1.52, 0.97], True),
        ([3.40, 3.31, 3.38], False),
        ([73.94, 80.31, 85.06], False),
        ([100, 95, 90, 85, 80], True),
        ([100, 99.9, 99.8, 99.7, 99.6], False),
        ([100, 60, 100, 60, 100], False),
        ([70.0, 69.0], False),
        ([], False),
    ],
)
def test_a_fall_from_run_to_run_is_seen(runs: list[float], falls: bool) -> None:
    """The sequences of the story and of case C26, and look-alikes that are healthy."""
    assert stats.is_degrading(runs) is falls


@given(st.integers(2, 6), st.integers(-15, 15))
def test_kendalls_tail_counts_orderings(n: int, score: int) -> None:
    """The recursion equals counting all orderings."""
    pairs = list(itertools.combinations(range(n), 2))
    scores = [
        sum(1 if order[j] > order[i] else -1 for i, j in pairs)
        for order in itertools.permutations(range(n))
    ]
    expected = sum(s <= score for s in scores) / len(scores)
    assert stats._kendall_tail(score, n) == pytest.approx(expected)


def test_what_is_usual_is_learned_from_five_values_on() -> None:
    """The floor is never nearer than the share, and one outlier does not move it."""
    assert stats.usual_low([2600.0] * 4, least_share=0.1) is None
    assert stats.usual_low([2600.0] * 5, least_share=0.1) == pytest.approx(2340.0)
    assert stats.usual_low([2600.0] * 5 + [900.0], least_share=0.1) == pytest.approx(2340.0)
    wide = [2000.0, 2200.0, 2400.0, 2600.0, 2800.0]
    assert stats.usual_low(wide, least_share=0.1) == pytest.approx(2400 - 3 * 1.4826 * 200)
