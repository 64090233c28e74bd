"""The health of a rig as pure decisions: bands, findings, quarantine, when a run is due."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from zoneinfo import ZoneInfo

import numpy as np
import pytest

from jobs import health
from jobs.health import Band, Finding, Health, Known, Measured, Outcome
from jobs.machine_check import CardMemory, MachineFacts, obstacle
from jobs.model import Blame, RigState

NOW = datetime(2026, 11, 30, 12, tzinfo=UTC)
IN = Finding(Outcome.IN_BAND, "as known")
OUT = Finding(Outcome.OUT_OF_BAND, "40.0 t/s, known are 60.0 to 75.0")
FAILED = Finding(Outcome.FAILED, "card_lost")
GIB = 2**30


def after(*findings: Finding, start: Health | None = None) -> Health:
    found = start or Health()
    for number, finding in enumerate(findings):
        found = health.after_run(found, finding, NOW + timedelta(minutes=number))
    return found


def test_a_band_is_as_wide_as_the_spread_and_never_narrower_than_its_floor() -> None:
    """Equal boots give the floor, boots that swing give four scaled MADs."""
    assert health.band_of([], floor=0.1) is None
    assert health.band_of([50.0], floor=0.1) == Band(45.0, 55.0)
    found = health.band_of([40.0, 50.0, 60.0], floor=0.1)
    assert found is not None
    assert found.high - 50.0 == pytest.approx(4 * 1.4826 * 10)


def test_one_wild_boot_does_not_widen_the_band() -> None:
    """Nine boots at 50 and one at 5 leave the floor."""
    assert health.band_of([50.0] * 9 + [5.0], floor=0.1) == Band(45.0, 55.0)


def test_healthy_boots_fall_outside_twice_in_a_row_almost_never() -> None:
    """With the spread of mixture models on the CPU (4.4 %), 10,000 rigs learned from 3 boots."""
    rng = np.random.default_rng(20261130)
    shut = 0
    for _ in range(10_000):
        boots = 50.0 * np.exp(0.044 * rng.standard_normal(5))
        band = health.band_of(list(boots[:3]), floor=health.CPU_FLOOR)
        assert band is not None
        shut += not band.holds(boots[3]) and not band.holds(boots[4])
    assert shut == 0


def test_what_a_run_says() -> None:
    """Speed, text and faults are held against what is known; the first run is what is known."""
    known = Known(asked=Band(60, 75), text_sha256="a" * 64)
    said = {"text_sha256": "a" * 64}
    cases = {
        Outcome.IN_BAND: Measured(speed=60.0, **said),
        Outcome.OUT_OF_BAND: Measured(speed=59.9, **said),
        Outcome.DISTURBED: Measured(disturbance="other work took 80 %"),
        Outcome.FAILED: Measured(failure="card_lost", blame=Blame.ENVIRONMENT),
        Outcome.NO_ANSWER: Measured(failure="crashed", blame=Blame.ENGINE),
    }
    for outcome, measured in cases.items():
        assert health.judge(known, measured).outcome is outcome
    assert health.judge(known, Measured(speed=90.0, **said)).outcome is Outcome.OUT_OF_BAND
    assert "text" in health.judge(known, Measured(speed=61.0, text_sha256="b" * 64)).why
    assert health.judge(known, Measured(fault="broken_output: noise")).outcome in health.BAD
    assert health.judge(Known(), Measured(speed=61.0)).outcome is Outcome.BASELINE


def test_one_bad_run_is_repeated_and_the_second_shuts() -> None:
    """A rig is never quarantined for a single run; a good one in between starts over."""
    doubted = after(IN, OUT)
    assert (doubted.state, doubted.bad) == (RigState.TRUSTED, 1)
    assert health.due(doubted, NOW) == doubted.run_wanted != ""
    assert after(IN, OUT, IN, OUT).state is RigState.TRUSTED
    shut = after(IN, OUT, FAILED)
    assert (shut.state, shut.run_wanted, shut.last_good_at) == (RigState.QUARANTINED, "", NOW)


def test_silence_is_no_evidence() -> None:
    """A busy machine and a build that fails change nothing, and are asked again in an hour."""
    for outcome in (Outcome.DISTURBED, Outcome.NO_ANSWER):
        found = after(IN, Finding(outcome, "why"))
        assert (found.state, found.bad) == (RigState.TRUSTED, 0)
        later = NOW + timedelta(minutes=62)
        assert health.due(found, NOW + timedelta(minutes=5), answered=False) == ""
        assert health.due(found, later, answered=False) != ""


def test_two_good_runs_in_a_row_lift_a_quarantine() -> None:
    """One is not enough, a bad one between them starts over, and a person's is never lifted."""
    shut = after(OUT, OUT)
    assert after(IN, start=shut).state is RigState.QUARANTINED
    assert after(IN, OUT, IN, start=shut).state is RigState.QUARANTINED
    assert after(IN, IN, start=shut).state is RigState.TRUSTED
    by_hand = health.quarantined(Health(), "the fan is broken")
    assert after(IN, IN, IN, start=by_hand).state is RigState.QUARANTINED
    assert health.due(by_hand, NOW + timedelta(days=3)) != ""
    ran = after(IN, start=by_hand)
    assert health.due(ran, NOW + timedelta(days=3)) == ""
    released = health.released(by_hand)
    assert (released.state, health.due(released, NOW)) == (
        RigState.UNPROVEN,
        "released by hand",
    )


@pytest.mark.parametrize("change", [(3, 29), (10, 25)], ids=["spring", "autumn"])
def test_a_day_is_a_day_of_utc(change: tuple[int, int]) -> None:
    """Both change nights of Paris have one run, whatever the local clock shows."""
    start = datetime(2026, *change, 0, 30, tzinfo=ZoneInfo("Europe/Paris"))
    found, runs = after(IN, start=Health()), 0
    found = replace(found, last_run_at=start.astimezone(UTC) - timedelta(hours=20))
    for quarter in range(4 * 24):
        moment = start.astimezone(UTC) + timedelta(minutes=15 * quarter)
        if health.due(found, moment):
            found, runs = replace(found, last_run_at=moment), runs + 1
    assert runs == 1
    assert found.last_run_at is not None
    assert found.last_run_at.astimezone(UTC).hour == 0


def test_a_run_shortly_before_midnight_does_for_the_night() -> None:
    """The next one is not minutes later because the date changed."""
    late = replace(after(IN), last_run_at=datetime(2026, 11, 30, 23, 58, tzinfo=UTC))
    assert health.due(late, datetime(2026, 12, 1, 0, 5, tzinfo=UTC)) == ""
    assert health.due(late, datetime(2026, 12, 1, 6, 0, tzinfo=UTC)) == "daily"


def test_another_environment_makes_a_rig_unproven_and_nobody_is_blamed() -> None:
    """A driver, a kernel or a power limit that changed asks for a run, with words for people."""
    here = health.in_environment(after(IN, OUT), {"driver": "570.1", "kernel": "6.8"})
    assert (here.state, here.bad) == (RigState.TRUSTED, 1)
    moved = health.in_environment(here, {"driver": "575.2", "kernel": "6.8"})
    assert (moved.state, moved.bad, moved.good) == (RigState.UNPROVEN, 0, 0)
    assert moved.why == "the environment changed: driver 570.1 became 575.2"
    assert health.due(moved, NOW) == moved.why
    shut = replace(here, state=RigState.QUARANTINED, why="golden failed twice")
    still = health.in_environment(shut, {"driver": "575.2", "kernel": "6.8"})
    assert (still.state, still.why) == (RigState.QUARANTINED, "golden failed twice")
    assert "driver" in still.run_wanted


@pytest.mark.parametrize(
    ("code", "facts"),
    [
        ("card_lost", MachineFacts(card_fault="Driver/library version mismatch")),
        ("card_in_use", MachineFacts(cards=(CardMemory("H200", 8 * GIB, 140 * GIB),))),
        (
            "memory_held",
            MachineFacts(cards=(CardMemory("H200", 4 * GIB, 140 * GIB),), held_before=GIB),
        ),
        ("", MachineFacts(cards=(CardMemory("H200", GIB, 140 * GIB),), held_before=GIB)),
        ("", MachineFacts(cards=(), held_before=GIB)),
        ("disk_nearly_full", MachineFacts(disk_free_bytes=GIB // 2)),
        ("clock_off", MachineFacts(skew_seconds=-31.0)),
        ("clock_off", MachineFacts(skew_seconds=31.0)),
        ("", MachineFacts()),
        ("", MachineFacts(disk_free_bytes=5 * GIB, skew_seconds=29.0)),
        ("", MachineFacts(cards=(CardMemory("desktop", GIB // 2, 24 * GIB),))),
    ],
)
def test_what_keeps_a_bench_from_a_machine(code: str, facts: MachineFacts) -> None:
    """A card that is lost or in use, a full disk, a wrong clock: said with what to do."""
    found = obstacle(facts)
    assert (found.code if found else "") == code
    assert found is None or (found.says and found.advice)
