"""Request bodies: complete, fixed in length, and different in nothing but the seed."""

from __future__ import annotations

import json
from dataclasses import asdict, replace

import pytest

from jobs.dialect.asking import RANDOM_SEED, Sampling, request, sampling
from jobs.errors import UsageError
from jobs.scenarios import SCENARIOS

CHAT = SCENARIOS["decode-128"]
COMPLETION = SCENARIOS["completion-128"]


@pytest.mark.parametrize("scenario", SCENARIOS.values(), ids=SCENARIOS)
def test_every_sampling_field_is_sent(scenario):
    """Case C25: no sampler is left to a server's default."""
    body = request(scenario, run=1, alias="ours").body
    assert asdict(sampling(scenario, run=1)).items() <= body.items()
    assert body["samplers"][-1] == "temperature"
    json.dumps(body, allow_nan=False)


@pytest.mark.parametrize("scenario", SCENARIOS.values(), ids=SCENARIOS)
def test_nothing_may_shorten_or_cache_an_answer(scenario):
    """The length is fixed, the end token ignored, the prompt cache off, the answer streamed."""
    body = request(scenario, run=1, alias="ours").body
    assert body["ignore_eos"] is True
    assert body["cache_prompt"] is False
    assert body["stream"] is True
    assert body["timings_per_token"] is False
    assert body["model"] == "ours"
    assert scenario.tokens in (body.get("max_tokens"), body.get("n_predict"))


def test_the_two_endpoints_have_their_own_words():
    """Chat sends messages and asks for usage, completion sends the bare prompt."""
    chat = request(CHAT, run=1, alias="ours")
    assert chat.path == "/v1/chat/completions"
    assert chat.body["messages"] == [{"role": "user", "content": CHAT.prompt}]
    assert chat.body["stream_options"] == {"include_usage": True}
    completion = request(COMPLETION, run=1, alias="ours")
    assert completion.path == "/completion"
    assert completion.body["prompt"] == COMPLETION.prompt


def test_an_unknown_endpoint_is_refused():
    """A scenario with another endpoint is a mistake, not a guess."""
    with pytest.raises(UsageError, match="unknown endpoint 'images'"):
        request(replace(CHAT, endpoint="images"), run=1, alias="ours")


def test_the_seed_depends_on_scenario_and_run_alone():
    """Runs differ in their seed and in nothing else; the same run always has the same seed."""
    first, again, second = (request(CHAT, run=run, alias="a").body for run in (1, 1, 2))
    assert first == again
    assert {key for key in first if first[key] != second[key]} == {"seed"}
    assert request(replace(CHAT, seed=RANDOM_SEED), run=0, alias="a").body["seed"] == 0


def test_an_incomplete_sampling_set_cannot_be_made():
    """Case C25: naming the temperature alone is refused by construction."""
    with pytest.raises(TypeError, match="missing"):
        Sampling(temperature=0.6)


@pytest.mark.parametrize("value", [None, float("nan"), float("inf"), "0.5", True])
def test_a_sampling_field_is_a_number(value):
    """A field that is there but no number is refused as well."""
    with pytest.raises(UsageError, match="top_p"):
        replace(sampling(CHAT, run=0), top_p=value)


@pytest.mark.parametrize("seed", [-1, RANDOM_SEED])
def test_a_seed_is_never_random(seed):
    """The server's word for `choose one` is refused."""
    with pytest.raises(UsageError, match="not fixed"):
        replace(sampling(CHAT, run=0), seed=seed)
