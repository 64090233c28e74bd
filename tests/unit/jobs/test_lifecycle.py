"""Which state follows which, and what a failure leads to."""

from __future__ import annotations

from datetime import timedelta

import pytest

from jobs import lifecycle
from jobs.errors import Permanent
from jobs.model import Blame, State


@pytest.mark.parametrize("blame", [Blame.ENGINE, Blame.CONFIGURATION])
def test_a_fault_of_engine_or_configuration_is_not_tried_again(blame: Blame) -> None:
    """The same build would fail the same way."""
    assert lifecycle.after_failure(blame, 1, limit=3).state is State.FAILED


@pytest.mark.parametrize("blame", [Blame.INFRASTRUCTURE, Blame.ENVIRONMENT])
def test_other_faults_are_tried_again_and_then_left_as_dead_letters(blame: Blame) -> None:
    """Three losses in all, each wait longer than the one before."""
    first = lifecycle.after_failure(blame, 1, limit=3)
    second = lifecycle.after_failure(blame, 2, limit=3)
    assert (first.state, second.state) == (State.QUEUED, State.QUEUED)
    assert timedelta(0) < first.delay < second.delay
    assert lifecycle.after_failure(blame, 3, limit=3).state is State.DEAD


def test_no_sandbox_blocks_and_blames_nobody() -> None:
    """The job waits for a cage, it does not fail."""
    following = lifecycle.after_failure(
        Blame.ENVIRONMENT, 1, limit=3, failure_class=lifecycle.NO_SANDBOX
    )
    assert following.state is State.BLOCKED


def test_the_third_loss_is_a_dead_letter() -> None:
    """A worker that dies three times over a job stops getting it."""
    assert lifecycle.after_loss(2, limit=3).state is State.QUEUED
    assert lifecycle.after_loss(3, limit=3).state is State.DEAD


def test_waits_never_exceed_an_hour() -> None:
    """However many attempts there were."""
    assert lifecycle.retry_delay(1000) == lifecycle.RETRY_DELAY_LIMIT


def test_success_is_final_and_every_other_end_can_be_queued_again() -> None:
    """There is no state without an exit but success."""
    assert lifecycle.MOVES[State.SUCCEEDED] == frozenset()
    for state in set(State) - {State.SUCCEEDED}:
        assert lifecycle.MOVES[state], state


def test_a_move_that_is_not_allowed_is_refused() -> None:
    """Nothing jumps from waiting to done."""
    with pytest.raises(Permanent, match="queued cannot become succeeded"):
        lifecycle.check_move(State.QUEUED, State.SUCCEEDED)
