"""Scenarios are data; a ladder becomes one series for each depth."""

from __future__ import annotations

import zlib
from dataclasses import replace

import pytest

from jobs.dialect.output import brokenness, sanity
from jobs.errors import UsageError
from jobs.own_scenarios import asked_by, table_of
from jobs.scenarios import (
    LADDERS,
    SCENARIOS,
    SHIPPED,
    Scenario,
    all_rungs,
    depth_of,
    is_as_shipped,
    one_series,
    rungs,
    scenario_named,
)


@pytest.mark.parametrize("name", [*SCENARIOS, *LADDERS])
def test_every_shipped_scenario_is_found_by_its_name(name):
    """A plain scenario is its own only rung."""
    scenario = scenario_named(name)
    assert scenario.name == name
    assert not scenario.own
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


KNOWN = {
    "decode-128.v2": "eec7cf6d812e",
    "completion-128.v2": "2c53cc067f6c",
    "decode-800.v2": "2ab99168b80c",
    "code.v2": "41ae1d555701",
    "prose.v2": "16fcbf61f9b9",
    "tool-replay.v1": "4974a1de02fc",
    "prefill.v1": "31e30e91be9c",
    "thinking-off.v1": "b87781171247",
    "thinking-on.v1": "3ca67c7e1ba0",
    "vision.v1": "bed3f6b4a7fb",
    "ladder.v1": "7a1dd79ef315",
}
"""What each version of a shipped scenario asks; a line is added here, never changed."""


@pytest.mark.parametrize("scenario", SHIPPED.values(), ids=SHIPPED)
def test_a_version_never_asks_anything_else(scenario):
    """Whoever changes a prompt, a length or a sampler gives the scenario its next version."""
    assert KNOWN[f"{scenario.name}.v{scenario.version}"] == scenario.digest[:12]


def test_the_digest_is_of_what_changes_a_number():
    """How often it is run and what it is called changes none, every other field does."""
    scenario = SCENARIOS["code"]
    for same in ({"runs": 9}, {"boots": 9}, {"name": "other"}, {"own": True}):
        assert replace(scenario, **same).digest == scenario.digest
    for other in ({"prompt": "x"}, {"tokens": 9}, {"temperature": 0.1}, {"thinking": True}):
        assert replace(scenario, **other).digest != scenario.digest


def test_the_key_of_an_own_scenario_holds_its_digest():
    """Two users may give the same name and version to different prompts."""
    own = replace(SCENARIOS["code"], name="mine", own=True)
    assert own.key == f"mine.v2-{own.digest[:12]}"
    assert replace(own, filled_tokens=900).key == f"{own.key}@900"
    assert replace(own, prompt="x").key != own.key


def test_no_two_runs_share_a_prompt_and_both_arms_do():
    """The salt is a function of scenario and run alone."""
    scenario = SCENARIOS["prose"]
    assert scenario.prompt_of(1) == scenario.prompt_of(1)
    assert len({scenario.prompt_of(run) for run in range(50)}) == 50
    assert scenario.prompt_of(1) != replace(scenario, version=3).prompt_of(1)


def test_tool_replay_repeats_itself_and_is_language():
    """Much repetition, and still no broken output."""
    prompt = SCENARIOS["tool-replay"].prompt
    assert len(zlib.compress(prompt.encode())) < len(prompt) / 5
    assert brokenness(prompt) == ""
    assert sanity(prompt) > 0.9


def test_one_that_calls_itself_shipped_is_compared():
    """A file from elsewhere may not smuggle another prompt into a series of ours."""
    scenario = SCENARIOS["decode-128"]
    assert is_as_shipped(replace(scenario, runs=1, boots=1))
    assert is_as_shipped(replace(scenario, version=1, prompt="of another release"))
    assert not is_as_shipped(replace(scenario, prompt="x"))
    assert not is_as_shipped(replace(scenario, name="unknown"))
    rung = rungs(scenario_named("ladder"), context_tokens=8192)[0]
    assert is_as_shipped(rung)


@pytest.mark.parametrize("step", all_rungs(scenario_named("ladder")))
def test_a_rung_is_found_by_its_word(step):
    """What a job stores is enough to ask the same again, and the key tells the depth."""
    assert asked_by(step.word, table_of(step)) == step
    assert step.word == f"ladder@{step.filled_tokens}"
    assert depth_of(step.key) == step.filled_tokens


def test_a_rung_of_an_own_ladder_travels_whole():
    """Its depth is part of its words and of its key."""
    mine = Scenario("mine", 1, "filled", "", 16, 2, 1, depths=(900, 300), own=True)
    first, second = all_rungs(mine)
    assert (first.word, second.word) == ("mine@300", "mine@900")
    assert asked_by(first.word, table_of(first)) == first
    assert scenario_named("mine@900", {"mine": mine}) == second


@pytest.mark.parametrize(
    "word", ["ladder@", "ladder@0", "ladder@-1", "ladder@4k", "ladder@99999999", "code@4096", "@1"]
)
def test_a_word_that_names_no_rung_is_unknown(word):
    """Only a ladder has depths."""
    with pytest.raises(UsageError, match="unknown scenario"):
        scenario_named(word)


def test_a_filled_scenario_keeps_its_name():
    """It is no ladder; with its own depth it may be named all the same."""
    assert scenario_named("prefill").word == "prefill"
    assert scenario_named("prefill@4096") is scenario_named("prefill")
    with pytest.raises(UsageError, match="unknown"):
        scenario_named("prefill@8192")


def test_a_whole_ladder_is_not_one_series():
    """The refusal names a rung."""
    with pytest.raises(UsageError) as caught:
        one_series(scenario_named("ladder"))
    assert "ladder@4096" in caught.value.advice
