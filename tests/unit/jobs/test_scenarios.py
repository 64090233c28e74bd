"""Scenarios are data; a ladder becomes one series for each depth."""

from __future__ import annotations

import pytest

from jobs.errors import UsageError
from jobs.scenarios import LADDERS, SCENARIOS, rungs, scenario_named


@pytest.mark.parametrize("name", [*SCENARIOS, *LADDERS])
def test_every_shipped_scenario_is_found_by_its_name(name):
    """A plain scenario is its own only rung."""
    scenario = scenario_named(name)
    assert scenario.name == name
    steps = rungs(scenario, context_tokens=2**21)
    assert [step.key for step in steps] == (
        [scenario.key] if not scenario.depths else [f"{scenario.key}@{d}" for d in scenario.depths]
    )


def test_rungs_without_room_are_left_out():
    """A ladder ships for large contexts and serves small ones."""
    steps = rungs(scenario_named("ladder"), context_tokens=40_000)
    assert [step.filled_tokens for step in steps] == [4096, 32_768]


@pytest.mark.parametrize("depths", [(1 << 20,), (0,), (-5,), (100, 4000)])
def test_a_depth_that_was_asked_for_and_has_no_room_is_refused(depths):
    """Leaving it out would answer another question."""
    with pytest.raises(UsageError, match="ladder"):
        rungs(scenario_named("ladder"), context_tokens=4096, depths=depths)


def test_a_context_without_room_for_the_scenario_is_refused():
    """Also where a scenario has no depths to choose from."""
    with pytest.raises(UsageError, match=r"prefill\.v1@4096"):
        rungs(scenario_named("prefill"), context_tokens=4096)
    with pytest.raises(UsageError):
        rungs(scenario_named("ladder"), context_tokens=300)


def test_an_unknown_scenario_is_answered_with_the_nearest():
    """As every unknown word is."""
    with pytest.raises(UsageError) as caught:
        scenario_named("lader")
    assert "ladder" in caught.value.advice
