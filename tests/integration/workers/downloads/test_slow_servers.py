"""Servers that drip hold no worker: each answer has to come at a least rate."""

from __future__ import annotations

import time
from collections.abc import Callable

import pytest
from support.one_file import WEIGHTS, Bring
from support.weights_hub import COMMIT, REPO, Handler, WeightsHub

from jobs.errors import Transient
from jobs.hub import Hub, snapshot
from workers.download_plan import LeastRate


def drips_its_head(handler: Handler) -> None:
    """One byte of a header that has no end, and another."""
    handler.wfile.write(b"HTTP/1.1 200 OK\r\nX: ")
    for _ in range(400):
        handler.wfile.write(b"a")
        time.sleep(0.02)


def drips_its_body(handler: Handler) -> None:
    """A sound head, and byte after byte."""
    handler.send_response(206)
    handler.send_header("Content-Range", f"bytes 0-{len(WEIGHTS) - 1}/{len(WEIGHTS)}")
    handler.send_header("Content-Length", str(len(WEIGHTS)))
    handler.end_headers()
    handler.close_connection = True
    for byte in WEIGHTS[:400]:
        handler.wfile.write(bytes([byte]))
        time.sleep(0.02)


@pytest.mark.parametrize("part", ["resolve", "cdn"])
@pytest.mark.parametrize("drips", [drips_its_head, drips_its_body])
def test_a_server_that_drips_is_left(
    hub: WeightsHub, fetch: Bring, part: str, drips: Callable[[Handler], None]
) -> None:
    """Each byte comes in time, the file would take years: the worker is given back."""
    hub.faults[part] = [drips]
    began = time.monotonic()
    with pytest.raises(Transient, match="too slowly"):
        fetch(least_rate=LeastRate(seconds=0.4))
    assert time.monotonic() - began < 4
    assert fetch()[0].read_bytes() == WEIGHTS


def test_many_slow_answers_are_one_slow_file(hub: WeightsHub, fetch: Bring) -> None:
    """A server that ends each answer after a little is not waited for again and again."""

    def little(handler: Handler) -> None:
        time.sleep(0.3)
        handler.ranged(handler.file, length=70_000)

    hub.faults["cdn"] = [little] * 50
    with pytest.raises(Transient, match="too slowly"):
        fetch(least_rate=LeastRate(seconds=0.5, bytes_a_second=1_000_000))
    assert hub.count("cdn") < 5


@pytest.mark.parametrize("drips", [drips_its_head, drips_its_body])
def test_a_description_in_drops_is_left(hub: WeightsHub, drips: Callable[[Handler], None]) -> None:
    """The question for the commit has one limit for all of its answer."""
    hub.faults["api"] = [drips]
    began = time.monotonic()
    with pytest.raises(Transient):
        snapshot(Hub(hub.url), REPO, COMMIT, whole_seconds=0.4)
    assert time.monotonic() - began < 4
