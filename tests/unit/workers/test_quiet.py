"""A boot that others disturbed never feeds a verdict."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from jobs.control import Control
from jobs.errors import JobFailure
from jobs.model import Blame, Boot, BootFacts, Effective, Measurement, Validity
from workers.quiet import disturbance, marked, wait_released


def boot(share: float | None) -> Boot:
    return Boot(
        number=2,
        load_seconds=1.0,
        facts=BootFacts(),
        effective=Effective(),
        props={},
        slots=(),
        measurements=(
            Measurement(run=1, warmup=False, validity=Validity.OK, decode_tps=4.2),
            Measurement(run=2, warmup=False, validity=Validity.TOO_SHORT, reason="3 of 128"),
        ),
        environment={} if share is None else {"foreign_cpu_share": share},
    )


def test_a_boot_beside_a_compile_is_tainted_and_keeps_its_numbers() -> None:
    """Three quarters of the processors went elsewhere: 4.2 t/s is no speed of this engine."""
    found = marked(boot(0.75))
    assert [m.validity for m in found.measurements] == [Validity.TAINTED, Validity.TOO_SHORT]
    assert found.measurements[0].decode_tps == 4.2
    assert "75% of the processors" in found.measurements[0].reason


def test_a_boot_left_alone_stays_as_it_is() -> None:
    """Background noise below the limit, or nothing known, changes nothing."""
    for share in (0.0, 0.065, None):
        assert not disturbance(boot(share))
        assert marked(boot(share)) == boot(share)


def on_card(*runs: dict[str, Any]) -> Boot:
    """A boot whose measured runs left these readings of the card."""
    calm = {"process_bytes": 2**30, "foreign_processes": 0, "reasons": [], "range": {}}
    return replace(
        boot(0.0),
        measurements=tuple(
            Measurement(run=n, warmup=n == 0, validity=Validity.OK, after={"card": calm | run})
            for n, run in enumerate(({"reasons": ["thermal"], "foreign_processes": 9}, *runs))
        ),
    )


def clock(mhz: int) -> dict[str, Any]:
    return {"range": {"sm_mhz": [mhz - 10, mhz, mhz + 10]}}


@pytest.mark.parametrize(
    ("runs", "words"),
    [
        (({"foreign_processes": 2},), "2 other processes"),
        (({}, {"reasons": ["power cap", "thermal"]}), "slowed down during boot 2: thermal"),
        (({"reasons": ["power brake"]},), "power brake"),
        ((clock(2600), clock(2000)), "fell from 2600 to 2000 MHz"),
        (({"reasons": ["power cap", "idle"]},), ""),
        (({"foreign_processes": 1, "process_bytes": None},), ""),
        ((clock(2600), clock(2500)), ""),
        (({}, {"range": None, "reasons": "thermal", "foreign_processes": "2"}), ""),
    ],
)
def test_a_card_that_others_used_or_that_was_slowed_taints_its_boot(runs, words) -> None:
    """Its own power limit is no disturbance, nor is a warm-up, nor what nobody could see."""
    found = disturbance(on_card(*runs))
    assert found == "" if not words else words in found


class Held:
    """A card that gives memory back after so many looks."""

    def __init__(self, looks: float, *, stuck_bytes: int = 14 * 2**30) -> None:
        self.looks, self.stuck_bytes = looks, stuck_bytes

    def reading(self, _pids: object) -> dict[str, Any]:
        self.looks -= 1
        return {"device_bytes": self.stuck_bytes if self.looks > 0 else 300 * 2**20}


class NoWaiting(Control):
    def wait(self, seconds: float) -> None:
        self.check()


def test_memory_comes_back_before_the_next_boot() -> None:
    """Case C13: a card that frees late is waited for, one that does not blames no engine."""
    wait_released(Held(4), 310 * 2**20, NoWaiting(), limit_seconds=60)
    wait_released(Held(1e9), None, NoWaiting(), limit_seconds=60)
    with pytest.raises(JobFailure, match="14,026 MiB") as caught:
        wait_released(Held(1e9), 310 * 2**20, NoWaiting(), limit_seconds=0)
    assert (caught.value.failure_class, caught.value.blame) == (
        "memory_held",
        Blame.INFRASTRUCTURE,
    )


def test_a_clock_below_the_usual_taints_its_boot() -> None:
    """The same boot is left alone where nothing is known, or where its clock is usual."""
    slow = on_card(clock(2000), clock(1990))
    assert disturbance(slow) == ""
    assert disturbance(slow, least_mhz=1900.0) == ""
    words = "ran at 1995 MHz during boot 2, 2340 MHz at least are usual"
    assert words in disturbance(slow, least_mhz=2340.0)
    found = marked(slow, least_mhz=2340.0)
    assert {m.validity for m in found.measurements} == {Validity.TAINTED}
    assert disturbance(boot(0.0), least_mhz=2340.0) == ""
