"""Files on loopback that answer ranges, rightly or in one of many wrong ways."""

from __future__ import annotations

import threading
from collections.abc import Callable
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from types import TracebackType
from typing import Any, Self

from support.gguf_files import File

Way = Callable[["Handler", int, int], None]


class Handler(BaseHTTPRequestHandler):
    """One request for a part of the one file."""

    protocol_version = "HTTP/1.1"
    owner: RangeServer

    def do_GET(self) -> None:
        first, _, last = self.headers.get("Range", "bytes=0-").removeprefix("bytes=").partition("-")
        size_bytes = self.owner.file.size_bytes
        end = min(int(last or size_bytes) + 1, size_bytes)
        self.owner.asked.append((self.path, dict(self.headers)))
        self.owner.way(self, int(first), end)

    def give(self, status: int, body: bytes = b"", **headers: str) -> None:
        """An answer; underscores in names of headers stand for hyphens."""
        self.send_response(status)
        for name, value in {"Content_Length": str(len(body)), **headers}.items():
            self.send_header(name.replace("_", "-"), value)
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *args: Any) -> None:
        """Say nothing."""


def ranged(handler: Handler, first: int, end: int) -> None:
    """As a good server does it."""
    file = handler.owner.file
    if first >= file.size_bytes:
        handler.give(416, Content_Range=f"bytes */{file.size_bytes}")
        return
    body = file.fetch(first, end - first)
    handler.give(206, body, Content_Range=f"bytes {first}-{end - 1}/{file.size_bytes}", ETag='"a"')


def whole(handler: Handler, first: int, end: int) -> None:
    """Ranges are ignored and the file never ends; whoever reads on is noticed."""
    del first, end
    file = handler.owner.file
    handler.send_response(200)
    handler.send_header("Content-Length", str(file.size_bytes))
    handler.end_headers()
    for offset in range(0, file.size_bytes, 2**16):
        try:
            handler.wfile.write(file.fetch(offset, 2**16))
        except OSError:
            break
        handler.owner.sent_bytes += 2**16
    handler.close_connection = True


def answering(status: int, body: bytes = b"", **headers: str) -> Way:
    """Always the same."""

    def way(handler: Handler, first: int, end: int) -> None:
        del first, end
        handler.give(status, body, **headers)

    return way


class RangeServer:
    """Serves one file below every path, in the way it was told."""

    def __init__(self, file: File, way: Way = ranged) -> None:
        self.file = file
        self.way = way
        self.asked: list[tuple[str, dict[str, str]]] = []
        self.sent_bytes = 0
        bound = type("Bound", (Handler,), {"owner": self})
        self._server = ThreadingHTTPServer(("127.0.0.1", 0), bound)
        self._server.daemon_threads = True
        self._thread = threading.Thread(target=self._server.serve_forever, args=(0.05,))

    @property
    def url(self) -> str:
        """Where it is."""
        return f"http://127.0.0.1:{self._server.server_port}"

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        fault: BaseException | None,
        at: TracebackType | None,
    ) -> None:
        self._server.shutdown()
        self._thread.join()
        self._server.server_close()
