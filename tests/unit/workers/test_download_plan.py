"""Where the bytes of an answer belong, and the words for how fast they come."""

from __future__ import annotations

import pytest

from jobs.errors import Transient
from workers.download_plan import LeastRate, Pace, Waiting, range_header, start_of


def start(status: int, offset: int = 100, size_bytes: int = 1000, **headers: str) -> int:
    said = {name.replace("_", "-"): value for name, value in headers.items()}
    return start_of(status, said, offset=offset, size_bytes=size_bytes, what="x.gguf")


def test_the_rest_is_asked_for() -> None:
    """From the first missing byte to the last one."""
    assert range_header(100, 1000) == {"Range": "bytes=100-999"}


def test_a_range_goes_on_and_a_whole_file_starts_again() -> None:
    """A shorter range than asked is a good answer too."""
    assert start(206, content_range="bytes 100-999/1000") == 100
    assert start(206, content_range="bytes 100-150/1000") == 100
    assert start(200, content_length="1000") == 0
    assert start(200) == 0


@pytest.mark.parametrize(
    "said",
    [
        "bytes 100-999/1001",
        "bytes 0-999/1000",
        "bytes 101-999/1000",
        "bytes 100-1000/1000",
        "bytes 100-99/1000",
        "bytes 100-999/*",
        "bytes */1000",
        "items 100-999/1000",
        "",
        "bytes 100-999/1000, bytes 0-1/1000",
        f"bytes 100-{'9' * 40}/1000",
    ],
)
def test_another_range_is_refused(said: str) -> None:
    """Its bytes would land in the wrong place, or belong to another file."""
    with pytest.raises(Transient):
        start(206, content_range=said)


def test_another_length_is_refused() -> None:
    """A page of a hotel's network is not the file."""
    with pytest.raises(Transient, match="has 9 bytes, not 1,000"):
        start(200, content_length="9")


@pytest.mark.parametrize(
    ("done", "now", "words"),
    [
        (1_000_000, 0.1, ""),
        (0, 5.0, ""),
        (10_000_000, 10.0, "1.0 MB/s, 2 min left"),
        (1_000_000, 10.0, "0.1 MB/s, 16 min left"),
        (100_000, 10.0, "0.0 MB/s, 2.8 h left"),
        (100_000_000, 10.0, "10.0 MB/s, 0 s left"),
    ],
)
def test_pace_is_said_in_rounded_words(done: int, now: float, words: str) -> None:
    """Nothing is said before there is a rate."""
    assert Pace(0.0, 0).words(done=done, total=100_000_000, now=now) == words


def test_a_minute_of_waiting_must_bring_something() -> None:
    """Only waiting counts, and each stretch is judged alone."""
    waiting = Waiting(LeastRate(seconds=60, bytes_a_second=100), "x")
    waiting.note(59.9, gained_bytes=0)
    waiting.note(0.1, gained_bytes=6_000)
    waiting.note(0.0, gained_bytes=10**9)
    waiting.note(59.0, gained_bytes=0)
    waiting.note(1.0, gained_bytes=0)
    with pytest.raises(Transient, match="too slowly: 5,999 bytes in 60 s"):
        waiting.note(60.0, gained_bytes=5_999)
