"""A server that answers just enough to keep a socket's timeouts quiet is given up all the same."""

from __future__ import annotations

import contextlib
import itertools
import socket
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from workers.client import EngineClient


@pytest.fixture
def serve() -> Iterator[Callable[[Iterator[bytes]], EngineClient]]:
    """Serves the same pieces to whoever connects, one every 50 ms."""
    over = threading.Event()
    with contextlib.ExitStack() as stack:

        def start(pieces: Callable[[], Iterator[bytes]]) -> EngineClient:
            folder = stack.enter_context(tempfile.TemporaryDirectory())
            path = Path(folder) / "e.sock"
            server = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
            server.bind(str(path))
            server.listen(64)
            server.settimeout(0.1)

            def answer(connection: socket.socket) -> None:
                with connection, contextlib.suppress(OSError):
                    for piece in pieces():
                        if over.wait(0.05):
                            return
                        connection.sendall(piece)

            def accept() -> None:
                while not over.is_set():
                    with contextlib.suppress(TimeoutError):
                        threading.Thread(target=answer, args=(server.accept()[0],)).start()
                server.close()

            thread = threading.Thread(target=accept)
            thread.start()
            asks = EngineClient(path, answer_seconds=0.6)
            stack.callback(asks.close)
            stack.callback(thread.join)
            stack.callback(over.set)
            return asks

        yield start


HEAD = b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\n"
HOSTILE = {
    "a header in drops": lambda: (bytes([byte]) for byte in itertools.cycle(b"HTTP/1.1 200 OK")),
    "a header without end": lambda: itertools.chain([HEAD], itertools.repeat(b"X-A: b\r\n")),
    "go on, and on": lambda: itertools.repeat(b"HTTP/1.1 100 Continue\r\n\r\n"),
    "a body in drops": lambda: itertools.chain(
        [HEAD + b"Content-Length: 9999\r\n\r\n"], itertools.repeat(b" ")
    ),
    "nothing": lambda: itertools.repeat(b""),
    "no HTTP": lambda: iter([b"\x00\xff garbage\r\n\r\n" * 10]),
    "wrong chunks": lambda: iter([HEAD + b"Transfer-Encoding: chunked\r\n\r\nzz\r\n"]),
    "deep JSON": lambda: iter([HEAD + b"Content-Length: 200000\r\n\r\n" + b"[" * 200_000]),
    "a huge number": lambda: iter([HEAD + b"Content-Length: 9000\r\n\r\n" + b"9" * 9000]),
    "compressed": lambda: iter([HEAD + b"Content-Encoding: gzip\r\nContent-Length: 3\r\n\r\nabc"]),
}


@pytest.mark.parametrize("pieces", HOSTILE.values(), ids=HOSTILE)
def test_a_question_ends_in_time_whatever_comes(serve, pieces) -> None:
    """The worker stays free to hear a cancel; nothing unreadable is taken for an answer."""
    asks = serve(pieces)
    began = time.monotonic()
    assert asks.read_json("/props") is None
    assert time.monotonic() - began < 3.0


@pytest.mark.parametrize("name", ["a header in drops", "go on, and on", "nothing", "no HTTP"])
def test_a_server_that_never_finishes_its_health_is_not_healthy(serve, name: str) -> None:
    """Asked again and again it holds one thread, not one for each question."""
    asks = serve(HOSTILE[name])
    began = time.monotonic()
    assert not any(asks.healthy() for _ in range(3))
    assert time.monotonic() - began < 5.0
    ours = [thread for thread in threading.enumerate() if thread.name == "asker"]
    assert len(ours) <= 1
