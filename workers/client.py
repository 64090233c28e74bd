"""HTTP to one server nobody trusts, over a unix socket or TCP; sizes bounded, every wait ends."""

from __future__ import annotations

import queue
import socket
import struct
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

import httpx

from jobs.dialect import wire
from jobs.model import Arrival, Request

CONNECT_SECONDS = 1.0
ANSWER_SECONDS = 10.0
JSON_BYTES = 4 * 2**20
ERROR_BYTES = 64 * 2**10
LINE_BYTES = 2**20
JOIN_SECONDS = 0.05  # from the answer to the end of its thread

Answer = TypeVar("Answer")


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


class EngineClient:
    """Asks one server over its socket, or with `at` over its address."""

    def __init__(
        self,
        socket_path: Path | None,
        *,
        answer_seconds: float = ANSWER_SECONDS,
        base_url: str = "http://engine",
        key: str = "",
    ) -> None:
        self._path = socket_path
        self._answer_seconds = answer_seconds
        self._asking: threading.Thread | None = None
        self._http = httpx.Client(
            # A kept connection may be closed by the server in the moment it is used again.
            transport=httpx.HTTPTransport(
                uds=str(socket_path) if socket_path else None,
                limits=httpx.Limits(max_keepalive_connections=0),
            ),
            base_url=base_url,
            timeout=httpx.Timeout(answer_seconds, connect=CONNECT_SECONDS),
            headers={
                "Accept-Encoding": "identity",
                "Connection": "close",
                **({"Authorization": f"Bearer {key}"} if key else {}),
            },
            trust_env=False,
        )

    @classmethod
    def at(cls, url: str, *, key: str = "") -> EngineClient:
        """A client of a server that runs already; `key` is sent to it and shown to nobody."""
        return cls(None, base_url=url, key=key)

    def close(self) -> None:
        """Let go of the socket."""
        self._http.close()

    def healthy(self) -> bool:
        """Whether `/health` says 200; a server that still loads says 503 or nothing."""
        if self._path is not None and self.listener_pid() is None:
            return False

        def ask() -> bool:
            with self._http.stream("GET", "/health", timeout=CONNECT_SECONDS) as answer:
                _head(answer.iter_raw())
                return answer.status_code == httpx.codes.OK

        return self._within(CONNECT_SECONDS, ask) is True

    def listener_pid(self) -> int | None:
        """The process that listens on the socket, by the kernel's word, in our pid namespace."""
        if self._path is None:
            return None
        with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as probe:
            probe.settimeout(CONNECT_SECONDS)
            try:
                probe.connect(str(self._path))
            except OSError:
                return None
            credentials = probe.getsockopt(
                socket.SOL_SOCKET, socket.SO_PEERCRED, struct.calcsize("3i")
            )
        pid: int = struct.unpack("3i", credentials)[0]
        return pid or None

    def read_json(self, path: str) -> Any:
        """The JSON of a GET, or None where the server gives none, an error or too much of it."""
        return self._read("GET", path, None)

    def ask_json(self, path: str, body: Mapping[str, Any]) -> Any:
        """The JSON that answers a POST; None as in `read_json`."""
        return self._read("POST", path, body)

    def _read(self, method: str, path: str, body: Mapping[str, Any] | None) -> Any:
        deadline = time.monotonic() + self._answer_seconds
        held = bytearray()

        def ask() -> bytes | None:
            with self._http.stream(method, path, json=body) as answer:
                if answer.status_code != httpx.codes.OK:
                    return None
                for chunk in answer.iter_raw():
                    held.extend(chunk)
                    if len(held) > JSON_BYTES or time.monotonic() > deadline:
                        return None
            return bytes(held)

        found = self._within(self._answer_seconds, ask)
        return None if found is None else wire.parsed(found)

    def _within(self, seconds: float, ask: Callable[[], Answer]) -> Answer | None:
        """What `ask` finds, or None where it fails or takes longer.

        A header that comes in drops, or never ends, satisfies every timeout of a socket. One that
        is given up goes on in its thread until the server ends; until then nothing more is asked.
        """
        if self._asking is not None and self._asking.is_alive():
            return None
        found: queue.SimpleQueue[Answer | None] = queue.SimpleQueue()

        def work() -> None:
            try:
                found.put(ask())
            except (httpx.HTTPError, httpx.StreamError, OSError, RuntimeError):
                found.put(None)

        self._asking = threading.Thread(target=work, daemon=True, name="asker")
        self._asking.start()
        try:
            return found.get(timeout=seconds)
        except queue.Empty:
            return None
        finally:
            self._asking.join(JOIN_SECONDS)

    def stream(self, request: Request, limits: StreamLimits) -> Stream:
        """Send a request; its events arrive in the returned stream from now on."""
        return Stream(self._http, request, limits)


class Stream:
    """One streamed answer, read by its own thread so that the caller stays free to give up."""

    def __init__(self, http: httpx.Client, request: Request, limits: StreamLimits) -> None:
        self._http = http
        self._request = request
        self._limits = limits
        self._items: queue.SimpleQueue[Arrival | End] = queue.SimpleQueue()
        self._thread = threading.Thread(target=self._read, daemon=True, name="stream reader")
        self._sent_at = time.perf_counter()
        self._thread.start()

    def next(self, *, timeout_seconds: float) -> Arrival | End | None:
        """What came next, or None where nothing came in time; nothing follows an End."""
        try:
            return self._items.get(timeout=timeout_seconds)
        except queue.Empty:
            return None

    def join(self, timeout_seconds: float) -> None:
        """Wait for the reading thread after its server has ended."""
        self._thread.join(timeout_seconds)

    def _seconds(self) -> float:
        return time.perf_counter() - self._sent_at

    def _read(self) -> None:
        try:
            self._items.put(self._answer())
        except (httpx.HTTPError, httpx.StreamError, OSError) as error:
            self._items.put(End(self._seconds(), 0, fault=f"{type(error).__name__}: {error}"))

    def _answer(self) -> End:
        timeout = httpx.Timeout(None, connect=CONNECT_SECONDS)
        with self._http.stream(
            "POST", self._request.path, json=dict(self._request.body), timeout=timeout
        ) as answer:
            if answer.status_code != httpx.codes.OK:
                body = _head(answer.iter_raw())
                return End(self._seconds(), answer.status_code, body=body)
            events, read_bytes, pending = 0, 0, b""
            finished = False
            for chunk in answer.iter_raw():
                seconds = self._seconds()
                read_bytes += len(chunk)
                *lines, pending = (pending + chunk).split(b"\n")
                for line in lines:
                    event, done = _event(line)
                    finished = finished or done
                    if event is not None:
                        events += 1
                        self._items.put(Arrival(seconds, event))
                if (
                    events > self._limits.events
                    or read_bytes > self._limits.total_bytes
                    or len(pending) > LINE_BYTES
                ):
                    return End(self._seconds(), answer.status_code, flooded=True)
            return End(self._seconds(), answer.status_code, finished=finished)


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


def _head(chunks: Iterator[bytes]) -> str:
    """The beginning of a body, cut by size and by time."""
    deadline = time.monotonic() + CONNECT_SECONDS
    held = bytearray()
    for chunk in chunks:
        held += chunk
        if len(held) > ERROR_BYTES or time.monotonic() > deadline:
            break
    return wire.plain(bytes(held[:ERROR_BYTES]).decode("utf-8", "replace"))
