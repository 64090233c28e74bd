"""How the stand-in hub is reached: two origins, ranges, and what goes wrong on the wire."""

from __future__ import annotations

import json
import re
import threading
from contextlib import suppress
from dataclasses import dataclass
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import TYPE_CHECKING, Any
from urllib.parse import parse_qs, unquote, urlsplit

from support.github_wire import Fault, write_reply
from support.hugging_face_json import Stored

if TYPE_CHECKING:
    from support.hugging_face import HuggingFace


@dataclass(frozen=True)
class Asked:
    """One request and what became of it."""

    method: str
    path: str
    status: int
    authorization: str | None
    range: str | None
    is_cdn: bool


class _Quiet(ThreadingHTTPServer):
    daemon_threads = True

    def handle_error(self, request: Any, client_address: Any) -> None:
        """A client that leaves early is what we test."""


class Origin:
    """One origin, in a thread of its own."""

    def __init__(self, handler: type[BaseHTTPRequestHandler], host: str) -> None:
        self._server = _Quiet(("127.0.0.1", 0), handler)
        self._thread = threading.Thread(target=self._server.serve_forever, args=(0.02,))
        self.url = f"http://{host}:{self._server.server_port}"

    def start(self) -> None:
        self._thread.start()

    def stop(self) -> None:
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()


def handler(hub: HuggingFace, *, is_cdn: bool) -> type[BaseHTTPRequestHandler]:
    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"
        disable_nagle_algorithm = True

        def do_GET(self) -> None:
            self._answer()

        def do_HEAD(self) -> None:
            self._answer()

        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers.get("Content-Length", "0")))
            if self.path == "/api/settings/webhooks":
                hub.webhooks.append(json.loads(body))
                made = {"id": f"{len(hub.webhooks):024x}", "disabled": False, **hub.webhooks[-1]}
                self._write(200, json.dumps({"webhook": made}).encode(), {}, Fault(""))
            else:
                self._write(404, b"{}", {}, Fault(""))

        def _answer(self) -> None:
            parts = urlsplit(self.path)
            query = parse_qs(parts.query, keep_blank_values=True)
            fault = hub.take(("cdn " if is_cdn else "hub ") + self.path)
            if is_cdn:
                stored = hub.stored(parts.path, query)
                status, body, more = self._ranged(stored) if stored else (403, b"expired", {})
            else:
                hub.remaining -= "/api/" in self.path
                status, shown, more = hub.answer(parts.path, query)
                if isinstance(shown, Stored):
                    status, body, found = self._ranged(shown)
                    more = {**more, **found}
                else:
                    shown = fault.change(shown) if fault.change else shown
                    body = json.dumps(shown).encode()
                    more = {"Content-Type": "application/json", **more}
                more = {**hub.headers(), **more}
            if fault.status != 200:
                status = fault.status
            body = fault.body if fault.body is not None else body
            self._write(status, body, {**more, **fault.headers}, fault)

        def _ranged(self, stored: Stored) -> tuple[int, bytes, dict[str, str]]:
            said = self.headers.get("Range")
            size, end_of_all = stored.size_bytes, stored.size_bytes - 1
            found = re.fullmatch(r"bytes=(\d+)-(\d*)", said or "")
            tag = {"ETag": f'"{stored.blob_id}"', "Accept-Ranges": "bytes"}
            if not found or hub.ignores_ranges:
                return 200, stored.read(0, min(size, 2**22)), tag
            first, last = int(found[1]), min(int(found[2] or end_of_all), end_of_all)
            if first > end_of_all:
                return 416, b"", {**tag, "Content-Range": f"bytes */{size}"}
            body = stored.read(first, last - first + 1)
            return 206, body, {**tag, "Content-Range": f"bytes {first}-{last}/{size}"}

        def _write(self, status: int, body: bytes, more: dict[str, str], fault: Fault) -> None:
            hub.asked.append(
                Asked(
                    self.command,
                    unquote(self.path),
                    status,
                    self.headers.get("Authorization"),
                    self.headers.get("Range"),
                    is_cdn,
                )
            )
            with suppress(ConnectionError):
                if self.command == "HEAD":
                    self.send_response_only(status)
                    for name, value in more.items():
                        self.send_header(name, value)
                    self.send_header("Content-Length", str(len(body)))
                    self.end_headers()
                    return
                write_reply(self, status, body, more, fault)

        def log_message(self, *args: Any) -> None:
            """Say nothing."""

    return Handler
