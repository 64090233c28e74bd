"""A build that has no code for the card at hand is refused before anything is started."""

from __future__ import annotations

import pytest

from jobs.cuda_archs import CudaArchs
from jobs.errors import JobFailure
from jobs.model import Blame
from workers.card_code import check_card

BLACKWELL = CudaArchs(frozenset({120}), frozenset({120}))
H200 = {"name": "NVIDIA H200", "compute": (9, 0)}


def test_another_architecture_is_a_mismatch() -> None:
    """The configuration is blamed, and the word says what to build for."""
    with pytest.raises(JobFailure) as caught:
        check_card(BLACKWELL, H200)
    failure = caught.value
    assert (failure.failure_class, failure.blame) == ("arch_mismatch", Blame.CONFIGURATION)
    assert "sm_120, compute_120, and NVIDIA H200 is sm_90" in failure.message
    assert failure.advice == 'Build it for this card: cuda_arch = "90".'


def test_a_machine_without_a_card_is_at_fault() -> None:
    """No engine is blamed for it."""
    with pytest.raises(JobFailure) as caught:
        check_card(BLACKWELL, None)
    assert (caught.value.failure_class, caught.value.blame) == ("no_card", Blame.ENVIRONMENT)


@pytest.mark.parametrize(
    ("archs", "card"),
    [
        (CudaArchs(), None),
        (CudaArchs(), H200),
        (CudaArchs(frozenset({90}), frozenset()), H200),
        (BLACKWELL, {"name": "unknown", "compute": None}),
    ],
)
def test_what_may_run_is_let_through(archs, card) -> None:
    """A build for the processor, the right one, and a card that does not say what it is."""
    check_card(archs, card)
