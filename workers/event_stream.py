"""One streamed answer of a server nobody trusts, read at little cost while tokens are measured.

It is read with `http.client`: with httpx each event took four times the processor time, and what
measures must not take part in what it measures (docs/evidence/bench.md).
"""

from __future__ import annotations

import http.client
import json
import socket
import ssl
import threading
import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx

from jobs.dialect import wire
from jobs.model import Arrival, Request

CONNECT_SECONDS = 1.0
ERROR_BYTES = 64 * 2**10
READ_BYTES = 64 * 2**10
LINE_BYTES = 2**20

BROKEN = (OSError, http.client.HTTPException, ValueError)
"""What reading from a server that breaks off, or speaks no HTTP, may raise."""


@dataclass(frozen=True)
class StreamLimits:
    """What one streamed answer may hold."""

    events: int
    total_bytes: int


@dataclass(frozen=True)
class End:
    """How a stream ended: `finished` is the server's own word, `fault` is what went wrong."""

    seconds: float
    status: int
    finished: bool = False
    flooded: bool = False
    fault: str = ""
    body: str = ""


class UnixConnection(http.client.HTTPConnection):
    """HTTP over a unix socket."""

    def __init__(self, path: Path) -> None:
        super().__init__("engine", timeout=CONNECT_SECONDS)
        self._path = path

    def connect(self) -> None:
        """Reach the socket."""
        self.sock = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        self.sock.settimeout(self.timeout)
        self.sock.connect(str(self._path))


def connection_to(place: Path | httpx.URL) -> http.client.HTTPConnection:
    """A connection, not made yet, to a unix socket or to the host of an address."""
    if isinstance(place, Path):
        return UnixConnection(place)
    if place.scheme == "https":
        context = ssl.create_default_context()
        return http.client.HTTPSConnection(
            place.host, place.port, timeout=CONNECT_SECONDS, context=context
        )
    return http.client.HTTPConnection(place.host, place.port, timeout=CONNECT_SECONDS)


class Stream:
    """One streamed answer, read by its own thread so that the caller stays free to give up."""

    def __init__(
        self,
        place: Path | httpx.URL,
        request: Request,
        limits: StreamLimits,
        headers: Mapping[str, str],
    ) -> None:
        self._place = place
        self._request = request
        self._limits = limits
        self._headers = headers
        self._came: list[Arrival] = []
        self._end = End(0, 0, fault="nobody read it to its end")
        self._ended = threading.Event()
        self._thread = threading.Thread(target=self._read, daemon=True, name="stream reader")
        self._sent_at = time.perf_counter()
        self._thread.start()

    def take(self, *, timeout_seconds: float) -> tuple[list[Arrival], End | None]:
        """What came since the last time, and how it ended once it did.

        It waits for the end or the time, and not for each event: who waits for every token is
        woken by every token.
        """
        end = self._end if self._ended.wait(timeout_seconds) else None
        count = len(self._came)
        came, self._came[:count] = self._came[:count], []
        return came, end

    def join(self, timeout_seconds: float) -> None:
        """Wait for the reading thread after its server has ended."""
        self._thread.join(timeout_seconds)

    def _seconds(self) -> float:
        return time.perf_counter() - self._sent_at

    def _read(self) -> None:
        try:
            connection = connection_to(self._place)
            try:
                self._end = self._answer(connection)
            finally:
                connection.close()
        except BROKEN as error:
            self._end = End(self._seconds(), 0, fault=f"{type(error).__name__}: {error}")
        finally:
            self._ended.set()

    def _answer(self, connection: http.client.HTTPConnection) -> End:
        body = json.dumps(dict(self._request.body)).encode()
        path = self._request.path
        if isinstance(self._place, httpx.URL):
            path = self._place.raw_path.decode().rstrip("/") + path
        connection.connect()
        socket_ = connection.sock
        socket_.settimeout(None)
        connection.request(
            "POST", path, body, {**self._headers, "Content-Type": "application/json"}
        )
        answer = connection.getresponse()
        if answer.status != http.client.OK:
            socket_.settimeout(CONNECT_SECONDS)
            return End(self._seconds(), answer.status, body=head_of(_chunks(answer)))
        events, read_bytes, pending = 0, 0, b""
        finished = False
        for chunk in _chunks(answer):
            seconds = self._seconds()
            read_bytes += len(chunk)
            *lines, pending = (pending + chunk).split(b"\n")
            for line in lines:
                event, done = _event(line)
                finished = finished or done
                if event is not None:
                    events += 1
                    self._came.append(Arrival(seconds, event))
            if (
                events > self._limits.events
                or read_bytes > self._limits.total_bytes
                or len(pending) > LINE_BYTES
            ):
                return End(self._seconds(), answer.status, flooded=True)
        return End(self._seconds(), answer.status, finished=finished)


def _chunks(answer: http.client.HTTPResponse) -> Iterator[bytes]:
    while chunk := answer.read1(READ_BYTES):
        yield chunk


def _event(line: bytes) -> tuple[dict[str, Any] | None, bool]:
    """A line's event, if it holds one, and whether the server says that it was the last."""
    field, _, value = line.strip().partition(b":")
    value = value.strip()
    if field == b"error":
        return {"error": wire.parsed(value)}, True
    if field != b"data":
        return None, False
    if value == b"[DONE]":
        return None, True
    event = dict(wire.mapping(wire.parsed(value)))
    return event, event.get("stop") is True


def head_of(chunks: Iterator[bytes]) -> str:
    """The beginning of a body, cut by size and by time."""
    deadline = time.monotonic() + CONNECT_SECONDS
    held = bytearray()
    try:
        for chunk in chunks:
            held += chunk
            if len(held) > ERROR_BYTES or time.monotonic() > deadline:
                break
    except TimeoutError:
        pass
    return wire.plain(bytes(held[:ERROR_BYTES]).decode("utf-8", "replace"))
