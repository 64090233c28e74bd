"""A model hub on loopback whose bytes come from another origin, and the faults both can have."""

from __future__ import annotations

import hashlib
import json
import threading
import time
from collections.abc import Callable
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from types import TracebackType
from typing import Any, Self
from urllib.parse import unquote, urlsplit

COMMIT = "c0ffee" + "0" * 34
REPO = "spiritbuun/Tiny-GGUF"

Fault = Callable[["Handler"], None]


def sha256_of(content: bytes) -> str:
    """As the hub gives it for a file in LFS."""
    return hashlib.sha256(content).hexdigest()


class Handler(BaseHTTPRequestHandler):
    """One request to the hub or to the place its bytes come from."""

    protocol_version = "HTTP/1.1"
    owner: WeightsHub
    part: str

    def do_GET(self) -> None:
        """Answer rightly, or with the next scripted fault of this part."""
        hub = self.owner
        self.where = urlsplit(self.path)
        kind = "cdn" if self.part == "cdn" else "api" if "/api/" in self.path else "resolve"
        hub.asked.append((kind, self.path, dict(self.headers)))
        faults = hub.faults[kind]
        try:
            if faults and (fault := faults.pop(0)) is not None:
                fault(self)
            else:
                getattr(self, f"_{kind}")()
        except (BrokenPipeError, ConnectionResetError):
            self.close_connection = True

    def give(self, status: int, body: bytes = b"", **headers: str) -> None:
        """An answer; underscores in names of headers stand for hyphens."""
        self.send_response(status)
        for name, value in {"Content_Length": str(len(body)), **headers}.items():
            self.send_header(name.replace("_", "-"), value)
        self.end_headers()
        self.wfile.write(body)

    @property
    def file(self) -> bytes:
        """The bytes that are asked for."""
        return self.owner.files[unquote(self.where.path).split(f"/{COMMIT}/")[1]]

    @property
    def first(self) -> int:
        """Where the asked range starts."""
        return int(self.headers.get("Range", "bytes=0-").removeprefix("bytes=").split("-")[0])

    def ranged(self, content: bytes, *, length: int | None = None) -> None:
        """A good answer with the rest of `content`, or only `length` bytes of it."""
        body = content[self.first :]
        said = f"bytes {self.first}-{len(content) - 1}/{len(content)}"
        self.send_response(206)
        self.send_header("Content-Range", said)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        body = body if length is None else body[:length]
        for start in range(0, len(body), self.owner.chunk_bytes):
            self.wfile.write(body[start : start + self.owner.chunk_bytes])
            self.owner.sent_bytes += len(body[start : start + self.owner.chunk_bytes])
            if self.owner.pause_seconds:
                time.sleep(self.owner.pause_seconds)
        self.close_connection = length is not None

    def _api(self) -> None:
        siblings: list[dict[str, Any]] = [{"rfilename": "README.md", "size": 9}]
        for name, content in self.owner.files.items():
            lfs = {"sha256": sha256_of(content), "size": len(content), "pointerSize": 134}
            lfs |= self.owner.said.get(name, {})
            siblings.append({"rfilename": name, "size": lfs["size"], "lfs": lfs})
        body = {"_id": "1", "id": self.owner.repo, "sha": COMMIT, "siblings": siblings}
        self.give(200, json.dumps(body).encode(), Content_Type="application/json")

    def _resolve(self) -> None:
        there = f"{self.owner.cdn_url}{self.where.path}?sig={len(self.owner.asked)}"
        self.give(302, Location=there, X_Repo_Commit=COMMIT)

    def _cdn(self) -> None:
        self.ranged(self.file)

    def log_message(self, *args: Any) -> None:
        """Say nothing."""


def status(code: int, body: bytes = b"", **headers: str) -> Fault:
    """Always this answer."""
    return lambda handler: handler.give(code, body, **headers)


class WeightsHub:
    """Serves `files` of one repository; `faults` are taken in order, None is a good answer."""

    def __init__(self, files: dict[str, bytes]) -> None:
        self.files = files
        self.repo = REPO
        self.said: dict[str, dict[str, Any]] = {}
        self.faults: dict[str, list[Fault | None]] = {"api": [], "resolve": [], "cdn": []}
        self.asked: list[tuple[str, str, dict[str, str]]] = []
        self.chunk_bytes, self.pause_seconds, self.sent_bytes = 64 * 1024, 0.0, 0
        self._servers = {}
        for part in ("hub", "cdn"):
            bound = type("Bound", (Handler,), {"owner": self, "part": part})
            server = ThreadingHTTPServer(("127.0.0.1", 0), bound)
            server.daemon_threads = True
            self._servers[part] = server
        self._threads = [
            threading.Thread(target=server.serve_forever, args=(0.05,))
            for server in self._servers.values()
        ]

    @property
    def url(self) -> str:
        """Where the hub is."""
        return f"http://127.0.0.1:{self._servers['hub'].server_port}"

    @property
    def cdn_url(self) -> str:
        """Where its bytes come from: another origin."""
        return f"http://localhost:{self._servers['cdn'].server_port}"

    def count(self, kind: str) -> int:
        """How many requests of a kind came."""
        return sum(asked[0] == kind for asked in self.asked)

    def __enter__(self) -> Self:
        for thread in self._threads:
            thread.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        fault: BaseException | None,
        at: TracebackType | None,
    ) -> None:
        for server in self._servers.values():
            server.shutdown()
        for thread in self._threads:
            thread.join()
        for server in self._servers.values():
            server.server_close()
