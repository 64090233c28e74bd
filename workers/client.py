"""HTTP to one server nobody trusts, over a unix socket or TCP; sizes bounded, every wait ends."""

from __future__ import annotations

import queue
import socket
import struct
import threading
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, TypeVar

import httpx

from jobs.dialect import wire
from jobs.model import Request
from workers.event_stream import CONNECT_SECONDS, Stream, StreamLimits, head_of

ANSWER_SECONDS = 10.0
JSON_BYTES = 4 * 2**20
JOIN_SECONDS = 0.05  # from the answer to the end of its thread

Answer = TypeVar("Answer")


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
        self._headers = {
            "Accept-Encoding": "identity",
            "Connection": "close",
            **({"Authorization": f"Bearer {key}"} if key else {}),
        }
        self._http = httpx.Client(
            # A kept connection may be closed by the server in the moment it is used again.
            transport=httpx.HTTPTransport(
                uds=str(socket_path) if socket_path else None,
                limits=httpx.Limits(max_keepalive_connections=0),
            ),
            base_url=base_url,
            timeout=httpx.Timeout(answer_seconds, connect=CONNECT_SECONDS),
            headers=self._headers,
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
                head_of(answer.iter_raw())
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
        place = self._path if self._path is not None else self._http.base_url
        return Stream(place, request, limits, self._headers)
