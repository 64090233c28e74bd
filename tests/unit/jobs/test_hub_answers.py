"""What the hub's answers mean, and to whom our token is shown."""

from __future__ import annotations

import pytest
from pydantic import SecretStr

from jobs.errors import JobFailure, Later, Transient, UsageError
from jobs.hub import Hub, HubFile, Snapshot
from jobs.hub_answers import refusal, wait_seconds
from jobs.hub_names import HubPlace
from jobs.hub_weights import hub_weight

HUB = Hub("https://hub.example/", SecretStr("hf_secret"))
SHOWN = {"Authorization": "Bearer hf_secret"}
SHA = "a" * 64


@pytest.mark.parametrize(
    ("headers", "seconds"),
    [
        ({"retry-after": "17"}, 17),
        ({"retry-after": "0"}, 1),
        ({"retry-after": "86400"}, 3600),
        ({"retry-after": "Wed, 21 Oct 2026 07:28:00 GMT"}, None),
        ({"retry-after": "-5"}, None),
        ({"ratelimit": '"api";r=0;t=290'}, 291),
        ({"ratelimit": '"api";r=0;t=999999999'}, 3600),
        ({"ratelimit": '"api";r=0;wait=5'}, None),
        ({"retry-after": "x", "ratelimit": "r=0; t=7"}, 8),
        ({}, None),
    ],
)
def test_the_hub_says_how_long_to_wait(headers: dict[str, str], seconds: float | None) -> None:
    """In either of its two ways, never longer than an hour."""
    assert wait_seconds(headers) == seconds


@pytest.mark.parametrize("status", [408, 418, 500, 502, 503, 504])
def test_doubt_is_tried_again(status: int) -> None:
    """No file is called gone because a server is ill."""
    fault = refusal(status, {}, what="x")
    assert isinstance(fault, Transient)
    assert not isinstance(fault, Later)


def test_advice_knows_whether_there_is_a_token() -> None:
    """Nobody is told to set what is set."""
    without, with_one = (
        refusal(401, {}, what="x", has_token=has_token) for has_token in (False, True)
    )
    assert isinstance(without, JobFailure)
    assert "FORKSCOUT_HF_TOKEN" in without.advice
    assert "FORKSCOUT_HF_TOKEN" not in with_one.advice


@pytest.mark.parametrize(
    ("url", "shown"),
    [
        ("https://hub.example/a/b", SHOWN),
        ("https://hub.example:443/a/b", SHOWN),
        ("http://hub.example/a/b", {}),
        ("https://hub.example:444/a/b", {}),
        ("https://hub.example.evil.example/a", {}),
        ("https://evil.example/hub.example", {}),
        ("https://hub.example@evil.example/", {}),
        ("https://evil.example#https://hub.example/", {}),
    ],
)
def test_the_token_is_shown_to_one_origin(url: str, shown: dict[str, str]) -> None:
    """Scheme, host and port must be the hub's."""
    assert HUB.headers_for(url) == shown


def test_the_token_is_not_shown_where_others_read_along() -> None:
    """Plain HTTP is for this machine only."""
    token = SecretStr("hf_secret")
    with pytest.raises(UsageError, match="in clear"):
        Hub("http://hub.example", token)
    assert Hub("http://127.0.0.1:9", token).headers_for("http://127.0.0.1:9/x") == SHOWN


@pytest.mark.parametrize(
    "endpoint", ["", "hub.example", "ftp://hub.example", "https://u:p@hub.example", "http://[x"]
)
def test_an_endpoint_is_an_address(endpoint: str) -> None:
    """A wrong setting is said before anything is asked."""
    with pytest.raises(UsageError) as caught:
        Hub(endpoint)
    assert "FORKSCOUT_HF_ENDPOINT" in f"{caught.value.message} {caught.value.advice}"


def test_names_cannot_leave_their_step() -> None:
    """Whatever stands in a name is quoted."""
    assert HUB.url("api", "a/../b", "c?d#e") == "https://hub.example/api/a%2F..%2Fb/c%3Fd%23e"


def snapshot(*files: HubFile) -> Snapshot:
    return Snapshot("a/b", "c" * 40, {file.name: file for file in files})


def test_a_weight_without_a_digest_is_no_weight() -> None:
    """Files that git itself keeps cannot be verified."""
    found = snapshot(HubFile("x.gguf", 5, None))
    with pytest.raises(UsageError, match="no sha256"):
        hub_weight(found, HubPlace("a/b", "x.gguf"))


def test_a_missing_file_names_the_nearest() -> None:
    """Of the weights that are there."""
    found = snapshot(HubFile("model-Q4_K_M.gguf", 5, SHA), HubFile("README.md", 5, None))
    with pytest.raises(UsageError) as caught:
        hub_weight(found, HubPlace("a/b", "model-Q4_K_S.gguf"))
    assert "model-Q4_K_M.gguf" in caught.value.advice
