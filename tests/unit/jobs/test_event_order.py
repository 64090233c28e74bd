"""In which order events are planned, and which of them a later one of the same look stands for."""

from __future__ import annotations

from datetime import datetime, timedelta

import pytest
from support.rows import NOON

from jobs.store.events import Told, arranged, moment


def told(number: int, commit: str = "", *, before: str = "", minutes: int = 0) -> Told:
    return Told(
        number,
        NOON + timedelta(minutes=minutes or number),
        frozenset({(1, commit)} if commit else ()),
        frozenset({(1, before)} if before else ()),
    )


def behind(look):
    return {root: {each.id for each in some} for root, some in look.behind.items()}


def test_a_row_of_pushes_is_planned_with_the_last():
    """Nobody wants the heads that came and went before anybody looked."""
    found = arranged([told(1, "a"), told(2, "b", before="a"), told(3, "c", before="b")])
    assert found.order == (3,)
    assert behind(found) == {3: {1, 2}}


def test_branches_do_not_replace_each_other():
    """What names no earlier head of the look stands for itself."""
    found = arranged([told(1, "a"), told(2, "b", before="x"), told(3)])
    assert (found.order, behind(found)) == ((1, 2, 3), {})


def test_a_head_that_came_back_is_planned():
    """A, then B, then A again: the branch stands at A, and B is passed over."""
    found = arranged([told(1, "a", before="b", minutes=9), told(2, "b", before="a")])
    assert (found.order, behind(found)) == ((1,), {1: {2}})


def test_an_event_of_two_engines_is_passed_over_when_both_have_moved():
    """And planned itself where one stands at its head, or where two events took its place."""
    both = Told(1, NOON, frozenset({(1, "a"), (2, "a")}))
    one = Told(2, NOON + timedelta(minutes=1), frozenset({(1, "b")}), frozenset({(1, "a")}))
    other = Told(3, NOON + timedelta(minutes=2), frozenset({(2, "b")}), frozenset({(2, "a")}))
    assert arranged([both, one]).order == (1, 2)
    assert arranged([both, one, other]).order == (1, 2, 3)


@pytest.mark.parametrize("again", ["yesterday", "2026-12-01T00:00:00", 7, ["x"], None])
def test_a_moment_that_cannot_be_read_is_that_of_the_sighting(again):
    """A payload of another shape puts no other event off."""
    assert moment({"again_at": again}, NOON) == NOON
    assert moment("nothing", NOON) == NOON


def test_a_head_that_came_back_says_when():
    """Its moment is that of its return."""
    later = NOON + timedelta(hours=1)
    assert moment({"again_at": later.isoformat()}, NOON) == later
    assert isinstance(moment({}, NOON), datetime)
