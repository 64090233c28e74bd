"""A curve is a few of the real points."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from workers.curves import thinned


@given(st.integers(0, 500), st.integers(2, 40))
def test_a_curve_keeps_its_ends_and_invents_nothing(count, most):
    """Short ones are whole, long ones are cut to size in order."""
    points = [(float(n), n) for n in range(count)]
    found = thinned(points, most)
    assert len(found) == min(count, most)
    assert found == sorted(found)
    assert set(found) <= set(points)
    assert (found[:1], found[-1:]) == (points[:1], points[-1:])
