"""Ranks and ties."""

from __future__ import annotations

from dataclasses import replace

from support.entries import entry

from jobs.model import Validity
from web.ranking import boards, boots_apart, ranks


def _places(*rates: float, apart: float) -> list[str]:
    lines = ranks(
        [entry(decode_tps=rate) for rate in rates],
        lambda left, right: abs((left.decode_tps or 0) - (right.decode_tps or 0)) > apart,
    )
    return [line.place for line in lines]


def test_the_fastest_is_first() -> None:
    """What can be told apart gets ranks of its own."""
    assert _places(50, 70, 60, apart=5) == ["1", "2", "3"]


def test_what_cannot_be_told_apart_shares_a_rank() -> None:
    """Two entries inside their resolution are 1=, and the next is third."""
    assert _places(70, 69, 50, apart=5) == ["1=", "1=", "3"]


def test_small_steps_do_not_tie_the_first_with_the_last() -> None:
    """A rank is shared with its fastest entry, not handed down a chain."""
    assert _places(70, 66, 62, 58, apart=5) == ["1=", "1=", "3=", "3="]


def test_only_ok_results_rank() -> None:
    """The others are listed below without a rank, however fast they claim to be."""
    lines = ranks(
        [entry(decode_tps=900.0, validity=Validity.CACHED), entry(decode_tps=60.0)],
        lambda _left, _right: True,
    )
    assert [line.place for line in lines] == ["1", ""]
    assert lines[1].entry.validity is Validity.CACHED


def test_the_distance_is_measured_from_the_leader() -> None:
    """The leader has none; a third of the speed is minus two thirds."""
    lines = ranks([entry(decode_tps=90.0), entry(decode_tps=30.0)], lambda _l, _r: True)
    assert lines[0].against_leader is None
    assert lines[1].against_leader is not None
    assert round(lines[1].against_leader, 3) == -0.667


def test_groups_are_never_mixed() -> None:
    """Another scenario is another board with its own first place."""
    left = entry(decode_tps=60.0)
    right = replace(left, group=replace(left.group, scenario="decode-800.v2"), decode_tps=10.0)
    found = boards([left, right], lambda _l, _r: True)
    assert [board.ranked[0].place for board in found] == ["1", "1"]


def test_boots_decide_what_is_told_apart() -> None:
    """Quiet boots far apart are two ranks; noisy ones, or none, share one."""
    slow, fast = ((60.0,), (60.2,), (60.1,)), ((80.0,), (80.3,), (80.1,))
    noisy = ((60.0,), (81.0,), (70.0,))
    assert boots_apart(entry(runs=fast), entry(runs=slow))
    assert boots_apart(entry(runs=slow), entry(runs=fast))
    assert not boots_apart(entry(runs=fast), entry(runs=noisy))
    assert not boots_apart(entry(runs=()), entry(runs=fast))


def test_rungs_of_a_ladder_stand_by_depth() -> None:
    """Each depth is a board of its own, the shallowest first; allocated and filled are apart."""
    group = entry().group
    depths = (131_072, 4096, 32_768)
    rungs = [
        entry(group=replace(group, scenario=f"ladder.v1@{d}", context_tokens=200_000))
        for d in depths
    ]
    found = boards(rungs, lambda _left, _right: True)
    assert [each.group.filled_tokens for each in found] == [4096, 32_768, 131_072]
    assert {each.group.context_tokens for each in found} == {200_000}
