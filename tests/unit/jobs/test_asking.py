"""Request bodies: complete, fixed in length, and different in nothing but the seed."""

from __future__ import annotations

import base64
import json
import struct
import zlib
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
    """Chat sends messages and asks for usage, completion sends the prompt; both are salted."""
    chat = request(CHAT, run=1, alias="ours")
    assert chat.path == "/v1/chat/completions"
    salted = f"[{CHAT.key}:1]\n{CHAT.prompt}"
    assert chat.body["messages"] == [{"role": "user", "content": salted}]
    assert chat.body["stream_options"] == {"include_usage": True}
    completion = request(COMPLETION, run=1, alias="ours")
    assert completion.path == "/completion"
    assert completion.body["prompt"] == f"[{COMPLETION.key}:1]\n{COMPLETION.prompt}"


def test_an_unknown_endpoint_is_refused():
    """A scenario with another endpoint is a mistake, not a guess."""
    with pytest.raises(UsageError, match="unknown endpoint 'images'"):
        request(replace(CHAT, endpoint="images"), run=1, alias="ours")


def test_the_seed_depends_on_scenario_and_run_alone():
    """Runs differ in seed and salt alone; the same run always has the same of both."""
    first, again, second = (request(CHAT, run=run, alias="a").body for run in (1, 1, 2))
    assert first == again
    assert {key for key in first if first[key] != second[key]} == {"seed", "messages"}
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


@pytest.mark.parametrize(("name", "thinks"), [("thinking-on", True), ("thinking-off", False)])
def test_thinking_is_pinned_in_every_request(name, thinks):
    """Whatever the template's own default is, the request says which one it wants."""
    body = request(SCENARIOS[name], run=1, alias="ours").body
    assert body["chat_template_kwargs"] == {"enable_thinking": thinks}
    assert request(CHAT, run=1, alias="ours").body["chat_template_kwargs"] == {
        "enable_thinking": False
    }


def test_a_picture_goes_before_the_words():
    """The 64x64 gradient is made when it is sent: a PNG that grows from dark to full red."""
    picture, words = request(SCENARIOS["vision"], run=1, alias="ours").body["messages"][0][
        "content"
    ]
    assert words["text"].startswith("[vision.v1:1]\n")
    head, data = picture["image_url"]["url"].split(",")
    assert head == "data:image/png;base64"
    width, height, rows = pixels(base64.b64decode(data))
    assert (width, height) == (64, 64)
    assert rows[0][:3] == bytes((96, 0, 0))
    assert rows[63][-3:] == bytes((255, 0, 0))
    assert all(row[1::3].strip(b"\x00") == row[2::3].strip(b"\x00") == b"" for row in rows)


def pixels(png: bytes):
    """Width, height and the rows of a PNG of three bytes a pixel; checks each chunk's sum."""
    assert png[:8] == b"\x89PNG\r\n\x1a\n"
    chunks, at = {}, 8
    while at < len(png):
        (size,) = struct.unpack(">I", png[at : at + 4])
        kind, data = png[at + 4 : at + 8], png[at + 8 : at + 8 + size]
        assert struct.unpack(">I", png[at + 8 + size : at + 12 + size])[0] == zlib.crc32(
            kind + data
        )
        chunks[kind], at = data, at + 12 + size
    width, height = struct.unpack(">II", chunks[b"IHDR"][:8])
    raw = zlib.decompress(chunks[b"IDAT"])
    line = 1 + 3 * width
    return width, height, [raw[n * line + 1 : (n + 1) * line] for n in range(height)]
