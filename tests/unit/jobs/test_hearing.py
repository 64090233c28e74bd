"""When a worker is deaf: work is due, nobody looks, for longer than patience."""

from __future__ import annotations

from jobs.hearing import Ear, Heard

OLD, NEW = Heard(1, runs=False), Heard(2, runs=False)
BUSY = Heard(0, runs=True)


def test_due_work_that_nobody_looks_at_is_unheard_after_patience() -> None:
    """Not before."""
    ear = Ear(600)
    assert [ear.is_deaf(OLD, waits=True, at_seconds=at) for at in (0, 600, 601)] == [
        False,
        False,
        True,
    ]


def test_a_look_a_running_one_or_an_empty_queue_begins_the_count_anew() -> None:
    """A worker that waits for a quiet machine is not deaf, nor one that has nothing to do."""
    for found, waits in ((NEW, True), (BUSY, True), (OLD, False)):
        ear = Ear(600)
        assert not ear.is_deaf(OLD, waits=True, at_seconds=0)
        assert not ear.is_deaf(found, waits=waits, at_seconds=590)
        assert not ear.is_deaf(NEW, waits=True, at_seconds=1000)
        assert ear.is_deaf(NEW, waits=True, at_seconds=1601)
