"""Servers of model files that answer something else: one clear error, no secret given away."""

from __future__ import annotations

import contextlib
import threading
import time

import httpx
import pytest
from support import gguf_files as files
from support.range_server import RangeServer, answering, whole
from support.waiting import wait_for

from jobs.errors import BadGguf, Permanent, Transient
from jobs.gguf.reader import Depth, read_header
from jobs.reach import look_up
from scout import ranges
from scout.weight_places import read_model

NAME = "Qwen3.6-27B-MTP-UD-Q3_K_XL.gguf"
SECRET = "hf_secret"


@pytest.fixture(autouse=True)
def no_proxy(monkeypatch):
    """Loopback is asked directly."""
    monkeypatch.setenv("NO_PROXY", "127.0.0.1")


@pytest.fixture(scope="module")
def model():
    return files.qwen36(heads=1)


def test_a_server_without_ranges_is_left_after_the_first_bytes(model):
    """The facts are there all the same; more is refused, for it would be the whole file."""
    with RangeServer(model, whole) as server:
        found = read_model(f"{server.url}/{NAME}")
        assert found.facts.vocabulary_size == 248_320
        assert found.facts.size_bytes == model.size_bytes
        with pytest.raises(Permanent, match="ignores ranges"):
            read_model(f"{server.url}/{NAME}", full=True)
    assert server.sent_bytes < 64 * 2**20


def test_a_small_file_needs_no_ranges():
    """All of it is in the first bytes."""
    with RangeServer(files.projector(), whole) as server:
        assert read_model(f"{server.url}/mmproj.gguf", full=True).header.complete


FAULTS = {
    "401": (answering(401), Permanent, "private, gated or not there"),
    "403": (answering(403), Permanent, "private, gated or not there"),
    "404": (answering(404), Permanent, "not there"),
    "429": (answering(429, Retry_After="17"), Transient, "answers 429"),
    "500": (answering(500, b"<html>"), Transient, "answers 500"),
    "418": (answering(418), Permanent, "cannot use"),
    "204": (answering(204), Permanent, "cannot use"),
    "page": (answering(200, b"<!doctype html><p>log in</p>" + b" " * 99), BadGguf, "HTML page"),
    "empty": (answering(200), BadGguf, "is empty"),
    "nothing in range": (answering(416, Content_Range="bytes */0"), BadGguf, "is empty"),
    "range of nothing": (answering(416), Permanent, "cannot use"),
    "no range told": (answering(206, b"x" * 9), Permanent, "size of the file"),
    "no size told": (
        answering(206, b"x" * 9, Content_Range="bytes 0-8/*"),
        Permanent,
        "size of the file",
    ),
    "another range": (
        answering(206, b"x" * 9, Content_Range="bytes 5-13/99"),
        Transient,
        "other bytes",
    ),
    "too few bytes": (
        answering(206, b"x" * 9, Content_Range="bytes 0-98/99"),
        Transient,
        "9 bytes of 99",
    ),
    "packed": (
        answering(206, b"x" * 9, Content_Range="bytes 0-8/9", Content_Encoding="gzip"),
        Permanent,
        "sends bytes as 'gzip'",
    ),
    "round and round": (answering(302, Location="/again"), Permanent, "more than 5 times"),
    "to nowhere": (answering(302), Permanent, "more than 5 times"),
    "to a file": (answering(302, Location="file:///etc/passwd"), Permanent, "no place"),
    "to backslashes": (
        answering(302, Location="http:\\\\localhost:5\\x"),
        Permanent,
        "address that is none",
    ),
    "to an empty label": (answering(302, Location="http://a..b/"), Permanent, "no place"),
    "to no name": (answering(302, Location="http://xn--a/"), Permanent, "none|no place"),
    "to a secret": (answering(302, Location="http://a:b@127.0.0.1/"), Permanent, "no place"),
}


@pytest.mark.parametrize("name", FAULTS)
def test_what_a_server_may_answer(name):
    """Each gets its kind of error and one sentence; what may pass is never called lasting."""
    way, kind, reason = FAULTS[name]
    with (
        RangeServer(files.projector(), way) as server,
        pytest.raises(kind, match=reason) as caught,
    ):
        read_model(f"{server.url}/o/r/x.gguf?token=secret")
    assert "secret" not in caught.value.message + caught.value.advice
    if name == "429":
        assert "in 17 seconds" in caught.value.advice


def test_a_closed_port_and_a_broken_answer(model):
    """The network's faults pass."""

    def torn(handler, first, end):
        handler.send_response(206)
        handler.send_header("Content-Range", f"bytes {first}-{end - 1}/{model.size_bytes}")
        handler.send_header("Content-Length", str(end - first))
        handler.end_headers()
        handler.wfile.write(b"GGUF")
        handler.close_connection = True

    with RangeServer(model, torn) as server, pytest.raises(Transient, match="could not be read"):
        read_model(f"{server.url}/x.gguf")
    with pytest.raises(Transient, match="could not be read"):
        read_model(f"{server.url}/x.gguf")


def test_a_file_that_changes_while_it_is_read(model):
    """Two versions are never mixed."""

    def moving(handler, first, end):
        total = model.size_bytes + (first > 0)
        handler.give(
            206, model.fetch(first, end - first), Content_Range=f"bytes {first}-{end - 1}/{total}"
        )

    with RangeServer(model, moving) as server, pytest.raises(Transient, match="changed while"):
        read_model(f"{server.url}/x.gguf", full=True)


def test_a_slow_body_is_left(model):
    """The whole reading has one limit, whatever trickles in."""
    ticking = iter(range(0, 10**6, 30))
    with RangeServer(model) as server, ranges.client() as http:
        file = ranges.RangedFile(
            f"{server.url}/x.gguf", http=http, now=lambda: float(next(ticking))
        )
        with pytest.raises(Transient, match="more than 120 seconds"):
            read_header(file.fetch, size_bytes=file.size_bytes, depth=Depth.FULL, check=file.check)


def test_headers_in_drops_are_left(model):
    """Each drop comes in time, the answer never does."""
    left = threading.Event()

    def dripping(handler, first, end):
        with contextlib.suppress(OSError):
            while not left.wait(0.02):
                handler.wfile.write(b"H")
        handler.close_connection = True

    begun = time.monotonic()
    with RangeServer(model, dripping) as server:
        with ranges.client() as http, pytest.raises(Transient, match="more than"):
            ranges.RangedFile(f"{server.url}/x.gguf", http=http, whole_seconds=0.3)
        assert time.monotonic() - begun < 5
        left.set()
        wait_for(
            lambda: not any(each.name == "ranged request" for each in threading.enumerate()),
            what="the end of the request that was left",
        )


def test_the_token_stays_with_its_host(model):
    """A redirect is followed without it, and the place it leads to is asked directly next time."""
    with RangeServer(model) as store:

        def moved(handler, first, end):
            handler.give(302, Location=f"{store.url}/cdn/blob?signature=1")

        with RangeServer(model, moved) as hub:
            found = read_model(f"{hub.url}/o/r/{NAME}", full=True, token=SECRET)
    assert found.file_name == NAME
    assert found.facts.name_label == "UD-Q3_K_XL"
    assert [headers["Authorization"] for _, headers in hub.asked] == [f"Bearer {SECRET}"]
    assert len(store.asked) == 7
    assert not any("Authorization" in headers for _, headers in store.asked)


INSIDE = (
    "http://127.0.0.1:9/x.gguf",
    "http://[::1]/x.gguf",
    "http://localhost/x.gguf",
    "http://10.0.0.7/x.gguf",
    "http://169.254.169.254/latest",
    "//2130706433/x.gguf",
    "http://[::ffff:192.168.0.1]/x",
    "http://office.example/x.gguf",
)


@pytest.mark.parametrize("location", INSIDE)
def test_a_public_server_does_not_lead_into_our_networks(location):
    """The place is named and never asked, at the first redirect and behind another."""
    asked = []

    def answer(request):
        asked.append(str(request.url))
        first = request.url.path == "/first.gguf"
        there = "http://1.1.1.1/second.gguf" if first else location
        return httpx.Response(302, headers={"Location": there})

    names = {"files.example": ["8.8.8.8"], "office.example": ["192.168.3.4"]}
    for start in ("http://8.8.8.8/x.gguf", "http://8.8.8.8/first.gguf", "http://files.example/x"):
        with (
            ranges.client(transport=httpx.MockTransport(answer)) as http,
            pytest.raises(Permanent, match="into a private network"),
        ):
            ranges.RangedFile(start, http=http, look_up=lambda host: names.get(host, look_up(host)))
    places = {httpx.URL(url).host for url in asked}
    assert places == {"8.8.8.8", "1.1.1.1", "files.example"}


def test_an_address_of_ours_may_lead_to_another(model):
    """Who names a private address means it, wherever in our networks it sends us."""
    with RangeServer(model) as store:

        def moved(handler, first, end):
            handler.give(302, Location=f"{store.url}/y.gguf")

        with RangeServer(model, moved) as hub:
            found = read_model(f"{hub.url}/{NAME}")
    assert found.facts.architecture == "qwen35"
    assert [path for path, _ in store.asked] == ["/y.gguf"]


def test_https_is_never_left_for_http():
    """Whoever stands between could put another file in our hands."""

    def answer(request):
        return httpx.Response(302, headers={"Location": "http://127.0.0.1/x.gguf"})

    with (
        ranges.client(transport=httpx.MockTransport(answer)) as http,
        pytest.raises(Permanent, match="away from https"),
    ):
        read_model("https://127.0.0.1/x.gguf", http=http)
