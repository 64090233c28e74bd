"""What is no answer, a refusal, a quota, a redirect to nowhere: one clear word, no byte kept."""

from __future__ import annotations

import resource
import time
from pathlib import Path
from typing import Any

import httpx
import pytest
from support.one_file import FILE, WEIGHTS, Bring, left
from support.weights_hub import COMMIT, REPO, Handler, WeightsHub, status

from jobs import hub as hubs
from jobs.errors import JobFailure, Later, Transient, UsageError
from jobs.hub import Hub
from jobs.model import Blame


@pytest.mark.parametrize(
    ("answer", "says"),
    [
        (status(206, b"x" * 9, Content_Range=f"bytes 0-8/{len(WEIGHTS) + 1}"), "bytes, not"),
        (status(206, b"x" * 9, Content_Range=f"bytes 5-13/{len(WEIGHTS)}"), "asked was from 0"),
        (status(206, b"x" * 9, Content_Range="bytes */9"), "comes with the range"),
        (status(206, b"x" * 9), "comes with the range"),
        (status(200, b"<html>sign in</html>"), "bytes, not"),
        (status(206, b"x", Content_Encoding="gzip"), "is packed"),
        (status(500), "answered 500"),
        (status(502, b"<html>"), "answered 502"),
    ],
)
def test_an_answer_of_another_file_is_not_taken(
    hub: WeightsHub, fetch: Bring, root: Path, answer: Any, says: str
) -> None:
    """It is tried again later, and not a byte of it is kept."""
    hub.faults["cdn"] = [answer]
    with pytest.raises(Transient, match=says):
        fetch()
    assert left(root) == []


def test_more_than_promised_is_not_taken(hub: WeightsHub, fetch: Bring, root: Path) -> None:
    """A body without a length that goes on past the file's end is thrown away."""

    def endless(handler: Handler) -> None:
        handler.send_response(200)
        handler.end_headers()
        handler.wfile.write(WEIGHTS + b"more")
        handler.close_connection = True

    hub.faults["cdn"] = [endless]
    with pytest.raises(Transient, match="sends more than"):
        fetch()
    assert left(root) == []


def test_a_digest_the_hub_contradicts_costs_no_byte(hub: WeightsHub, fetch: Bring) -> None:
    """A replaced file is known from the hub's own words."""
    hub.said[FILE] = {"sha256": "a" * 64}
    with pytest.raises(JobFailure, match="nothing was downloaded") as caught:
        fetch()
    assert caught.value.blame is Blame.CONFIGURATION
    assert hub.count("cdn") == 0


def test_links_that_are_always_expired_end(hub: WeightsHub, fetch: Bring) -> None:
    """Three in a row give the worker back."""
    hub.faults["cdn"] = [status(403)] * 9
    with pytest.raises(Transient, match="expired"):
        fetch()
    assert hub.count("resolve") == 3


@pytest.mark.parametrize(
    ("code", "headers", "failure_class"),
    [
        (401, {}, "hub_missing"),
        (401, {"X_Error_Code": "RepoNotFound"}, "hub_missing"),
        (404, {"X_Error_Code": "RepoNotFound"}, "hub_missing"),
        (401, {"X_Error_Code": "GatedRepo"}, "hub_gated"),
        (403, {"X_Error_Code": "GatedRepo"}, "hub_gated"),
        (403, {}, "hub_private"),
        (404, {"X_Error_Code": "RevisionNotFound"}, "hub_revision"),
        (404, {"X_Error_Code": "EntryNotFound"}, "hub_file_gone"),
        (410, {}, "hub_file_gone"),
        (403, {"X_Error_Message": "Access to this resource is disabled."}, "hub_disabled"),
    ],
)
@pytest.mark.parametrize("part", ["api", "resolve"])
def test_each_refusal_of_the_hub_has_its_class(
    hub: WeightsHub, fetch: Bring, part: str, code: int, headers: Any, failure_class: str
) -> None:
    """None is tried again by itself, and each says what a person can do."""
    hub.faults[part] = [status(code, **headers)]
    with pytest.raises(JobFailure) as caught:
        fetch()
    assert caught.value.failure_class == failure_class
    assert caught.value.blame is Blame.CONFIGURATION
    assert caught.value.advice


def test_a_deleted_file_is_said(hub: WeightsHub, fetch: Bring) -> None:
    """The commit is there, the file is not in it."""
    del hub.files[FILE]
    with pytest.raises(JobFailure, match="is gone"):
        fetch()


def test_a_size_that_the_hub_does_not_say_is_unknown(hub: WeightsHub, fetch: Bring) -> None:
    """It is never nothing: the watch list says it, or nothing is downloaded."""
    hub.said[FILE] = {"size": None}
    with pytest.raises(JobFailure, match="no known bytes") as caught:
        fetch()
    assert caught.value.failure_class == "weights_size"
    assert hub.count("cdn") == 0
    assert fetch(size_bytes=len(WEIGHTS))[0].read_bytes() == WEIGHTS


def test_bytes_that_lie_elsewhere_in_the_repository_are_named(
    hub: WeightsHub, fetch: Bring
) -> None:
    """A file that was moved, or a commit that was squashed away: the advice says where it is."""
    hub.files = {"new/tiny-Q4_K_M.gguf": hub.files[FILE], "a/../b.gguf": WEIGHTS}
    for fault in (None, status(404, X_Error_Code="RevisionNotFound")):
        hub.faults["api"] = [fault]
        with pytest.raises(JobFailure) as caught:
            fetch()
        assert f"submit fetch {REPO}/new/tiny-Q4_K_M.gguf`" in caught.value.advice
    assert hub.count("cdn") == 0


def test_other_bytes_of_the_name_are_another_model(hub: WeightsHub, fetch: Bring) -> None:
    """They are suggested as that, and never fetched in its stead."""
    hub.files = {"new/tiny-Q4_K_M.gguf": b"other" * 99, "new/tiny-Q8_0.gguf": b"x"}
    with pytest.raises(JobFailure, match="is gone") as caught:
        fetch()
    assert "new/tiny-Q4_K_M.gguf is there now, with other bytes" in caught.value.advice
    assert hub.count("cdn") == 0


def test_bytes_that_the_watch_saw_elsewhere_are_named(hub: WeightsHub, fetch: Bring) -> None:
    """Of a repository that is gone; a place that could mean something else is never named."""
    seen = ["o/r/../../x.gguf", "o/r/x.gguf --yes", "other/Repo/tiny-Q4_K_M.gguf"]
    for places, named in ((seen, "other/Repo/tiny-Q4_K_M.gguf"), (seen[:2], "check the name")):
        hub.faults["api"] = [status(401)] * 2
        with pytest.raises(JobFailure, match="not there, or it is private") as caught:
            fetch(places=lambda _sha256, found=places: found)
        assert named in caught.value.advice
        assert "x.gguf" not in caught.value.advice


@pytest.mark.parametrize(
    ("code", "headers", "seconds"),
    [
        (429, {"RateLimit": '"resolvers";r=0;t=290'}, 291),
        (429, {"Retry_After": "17"}, 17),
        (429, {"Retry_After": "99999999"}, 3600),
        (429, {}, 300),
        (503, {"Retry_After": "5"}, 5),
    ],
)
@pytest.mark.parametrize("part", ["api", "resolve", "cdn"])
def test_a_quota_puts_the_job_off(
    hub: WeightsHub, fetch: Bring, part: str, code: int, headers: Any, seconds: float
) -> None:
    """The time is the hub's, bounded; nobody sleeps."""
    hub.faults[part] = [status(code, **headers)]
    began = time.monotonic()
    with pytest.raises(Later) as caught:
        fetch()
    assert caught.value.wait_seconds == seconds
    assert time.monotonic() - began < 2


@pytest.mark.parametrize(
    "location",
    [
        "",
        "ftp://x/y",
        "http://user:pw@localhost/x",
        "http://[bad",
        "/circle",
        "http://a..b/x",
        "http://xn--a/x",
        "http:\\\\localhost:5\\x",
    ],
)
def test_a_redirect_to_nowhere_ends(hub: WeightsHub, fetch: Bring, location: str) -> None:
    """Addresses that are none, and circles, are passing faults."""
    hub.faults["resolve"] = [status(302, Location=location)] * 50
    with pytest.raises(Transient):
        fetch()


@pytest.mark.parametrize("there", ["https://127.0.0.1/x", "https://10.0.0.7/x", "https://0x7f.1/x"])
def test_a_public_hub_does_not_lead_into_our_networks(there: str) -> None:
    """The place is never asked; a hub of ours may send to another place of ours."""
    seen = []

    def answer(request: httpx.Request) -> httpx.Response:
        seen.append(request.url.host)
        return httpx.Response(302, headers={"Location": there})

    with httpx.Client(transport=httpx.MockTransport(answer)) as http:
        public = Hub("https://8.8.8.8")
        with (
            pytest.raises(Transient, match="into a private network"),
            hubs.asked(http, public, public.url("x")),
        ):
            pass
        assert seen == ["8.8.8.8"]
        ours = Hub("https://10.0.0.1")
        with pytest.raises(Transient, match="in a circle"), hubs.asked(http, ours, ours.url("x")):
            pass
    assert "10.0.0.1" in seen


def sized(said: str) -> bytes:
    """A description of one file with these words as its size."""
    file = f'{{"rfilename": "{FILE}", "size": {said}}}'
    return f'{{"sha": "{COMMIT}", "siblings": [{file}]}}'.encode()


@pytest.mark.parametrize(
    "body",
    [
        b"<html>",
        b"[]",
        b"{}",
        b'{"sha": "main", "siblings": []}',
        b"[" * 100_000,
        *(sized(said) for said in ("9" * 4000, "-5", "true", "NaN", "1e3", str(2**63), '"7"')),
    ],
)
def test_a_strange_description_is_a_passing_fault(
    hub: WeightsHub, fetch: Bring, body: bytes
) -> None:
    """HTML with status 200 says nothing about the file."""
    hub.faults["api"] = [status(200, body)]
    with pytest.raises(Transient, match="no description") as caught:
        fetch()
    assert len(caught.value.detail) < 200


def test_no_room_is_known_before_a_byte_came(hub: WeightsHub, fetch: Bring, root: Path) -> None:
    """Neither on the disk nor in the budget."""
    for limits in ({"min_free_bytes": 2**62}, {"budget_bytes": len(WEIGHTS) - 1}):
        with pytest.raises(JobFailure, match="no room") as caught:
            fetch(**limits)
        assert caught.value.failure_class == "disk_full"
    assert hub.count("cdn") == 0
    assert left(root) == []


def test_a_disk_that_fills_blames_the_machine(fetch: Bring, root: Path) -> None:
    """The room is taken at the start, so the system says so before the bytes come."""
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (len(WEIGHTS) - 1, hard))
    try:
        with pytest.raises(JobFailure, match="no room") as caught:
            fetch()
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
    assert caught.value.failure_class == "disk_full"
    assert left(root) == []


@pytest.mark.parametrize("token", ["hf_\n", "hf_a b", "hf_\u00e9", "x" * 2000])
def test_a_damaged_token_is_refused_and_not_shown(fetch: Bring, token: str) -> None:
    """What no header takes would else stand in the words of the error."""
    with pytest.raises(UsageError) as caught:
        fetch(token=f"{token}end")
    assert "hf_" not in caught.value.message + caught.value.advice


def test_weights_without_a_source_are_asked_for(fetch: Bring) -> None:
    """Only a person can bring them."""
    with pytest.raises(JobFailure, match="not here") as caught:
        fetch(source={})
    assert "weights add" in caught.value.advice
