"""Verdicts: better or worse only beyond the noise, and never before it is confirmed."""

from __future__ import annotations

import pytest

from jobs.compare import BootRuns, Standing, judge, standing, tells_apart
from jobs.model import Validity, Verdict, VerdictKind

OK = Standing(Validity.OK)


def boots(*speeds: float) -> list[BootRuns]:
    return [BootRuns(number, (s, s, s, s, s)) for number, s in enumerate(speeds, 1)]


def verdict(candidate: list[float], baseline: list[float], **changes: object) -> Verdict:
    arguments = {
        "standing": OK,
        "baseline": baseline,
        "baseline_label": "1.0",
        "history": [baseline] if baseline else [],
        **changes,
    }
    return judge(boots(*candidate), **arguments)  # type: ignore[arg-type]


def test_the_first_result_is_no_verdict() -> None:
    """Nothing to compare with: the number alone is said."""
    assert verdict([70, 71, 72], []).kind is VerdictKind.FIRST


def test_two_boot_medians_of_one_binary_cannot_be_told_apart() -> None:
    """67.0 and 73.8 t/s half a minute apart on the same binary: the board says so."""
    found = verdict([73.8], [67.0], history=[[67.0, 73.8], [66.0, 72.0]])
    assert found.kind is VerdictKind.CANNOT_TELL
    assert found.resolution is not None
    assert found.resolution > 0.09
    assert "cannot tell" in found.sentence


def test_equal_builds_in_a_quiet_cell_are_the_same() -> None:
    """A tight interval inside the band is called the same, with its bound."""
    quiet = [[100.0, 100.1, 99.9]] * 10
    found = verdict([100.0, 100.1, 99.9], [100.0, 100.0, 100.1], history=quiet)
    assert found.kind is VerdictKind.SAME


@pytest.mark.parametrize(
    ("speed", "kind"),
    [(130.0, VerdictKind.SUSPECT_FASTER), (75.0, VerdictKind.SUSPECT_SLOWER)],
)
def test_a_clear_difference_is_only_a_suspicion(speed: float, kind: VerdictKind) -> None:
    """Boots made in one go share the machine's mood, so nothing is confirmed here."""
    found = verdict([speed] * 3, [100.0] * 3)
    assert found.kind is kind
    assert "not confirmed" in found.sentence


def test_a_certain_but_tiny_difference_is_no_news() -> None:
    """One per cent, however certain, is not worth anybody's attention."""
    quiet = [[100.0, 100.0, 100.0]] * 50
    assert verdict([101.0] * 3, [100.0] * 3, history=quiet).kind is VerdictKind.SAME


def test_a_boot_that_degrades_is_unstable_not_slow() -> None:
    """3.40, 1.52, 0.97 never becomes a mean of 1.96."""
    falling = [BootRuns(1, (3.40, 1.52, 0.97))]
    found = standing(falling, runs_asked=3, boots_asked=1, worst=Validity.OK, why="")
    assert found.validity is Validity.UNSTABLE
    judged = judge(falling, standing=found, baseline=[80.0], baseline_label="x", history=[])
    assert judged.kind is VerdictKind.UNSTABLE
    assert judged.effect is None


def test_too_few_usable_runs_are_invalid_not_slow() -> None:
    """Two usable runs of five say nothing (case C19)."""
    short = [BootRuns(1, (70.0, 71.0))]
    found = standing(
        short, runs_asked=5, boots_asked=1, worst=Validity.TOO_SHORT, why="predicted 41 of 800"
    )
    assert found.validity is Validity.TOO_SHORT
    assert "41 of 800" in found.reason
    judged = judge(short, standing=found, baseline=[80.0], baseline_label="x", history=[])
    assert judged.kind is VerdictKind.INVALID


def test_no_boot_at_all_is_invalid() -> None:
    """Zero usable runs is invalid, never a regression."""
    found = standing([], runs_asked=5, boots_asked=3, worst=Validity.OK, why="")
    assert found.validity is not Validity.OK


def test_ranks_need_a_difference_beyond_the_noise() -> None:
    """Neighbours inside the noise share a rank."""
    assert not tells_apart([70.0, 74.0, 71.0], [69.0, 73.0, 70.0])
    assert tells_apart([140.0, 141.0, 139.0], [70.0, 71.0, 69.0])
