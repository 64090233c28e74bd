"""A loopback server of real repositories: `git http-backend` behind Python's own HTTP server.

It counts what it is asked, and fails as a test tells it to. As a proxy it also speaks TLS in the
name of any host its certificate names, so that production addresses need no rewriting.
"""

from __future__ import annotations

import base64
import os
import ssl
import subprocess
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Event, Thread
from typing import Any
from urllib.parse import urlsplit

CHUNK_BYTES = 2**16
HANG_SECONDS = 60.0


@dataclass(frozen=True)
class Fault:
    """What a repository answers instead; `on` is the method it strikes, both where empty.

    With `cut_after` the true answer breaks off after so many bytes, or ends there as if it were
    whole if it is `smooth`; with `hang` nothing comes.
    """

    status: int = 200
    headers: Mapping[str, str] = field(default_factory=dict)
    body: bytes = b""
    cut_after: int | None = None
    smooth: bool = False
    hang: bool = False
    on: str = ""


@dataclass(frozen=True)
class Asked:
    """One request: for which host and repository, and what it carried."""

    method: str
    host: str
    repository: str
    service: str
    headers: Mapping[str, str]


class GitServer:
    """Serves `folder/OWNER/NAME.git` as `/OWNER/NAME` from the first line of its `with` on.

    `password` locks every repository; `moved` answers 301 with another address.
    """

    def __init__(self, folder: Path, *, tls: ssl.SSLContext | None = None) -> None:
        self.folder = folder
        self.tls = tls
        self.password = ""
        self.faults: dict[str, Fault] = {}
        self.moved: dict[str, str] = {}
        self.asked: list[Asked] = []
        self.released = Event()
        self._http = ThreadingHTTPServer(("127.0.0.1", 0), _handler(self))
        self._http.daemon_threads = True
        self._http.block_on_close = False
        self._thread = Thread(target=self._http.serve_forever, args=(0.02,), daemon=True)

    @property
    def url(self) -> str:
        """Its address, with a slash at the end."""
        return f"http://127.0.0.1:{self._http.server_port}/"

    def methods(self) -> list[str]:
        """The methods of all requests since the last call."""
        asked, self.asked = self.asked, []
        return [each.method for each in asked]

    def __enter__(self) -> GitServer:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.released.set()
        self._http.shutdown()
        self._http.server_close()
        self._thread.join()


def _handler(server: GitServer) -> type[BaseHTTPRequestHandler]:
    class Handler(_Handler):
        pass

    Handler.server_of_git = server
    return Handler


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    server_of_git: GitServer
    host = ""

    def log_message(self, *_: object) -> None:
        """Silent."""

    def do_CONNECT(self) -> None:
        tls = self.server_of_git.tls
        if tls is None:
            self.send_error(405)
            return
        self.send_response_only(200)
        self.end_headers()
        self.host = self.path.partition(":")[0]
        try:
            self.connection = tls.wrap_socket(self.connection, server_side=True)
        except OSError:
            self.close_connection = True
            return
        self.rfile = self.connection.makefile("rb")
        self.wfile = self.connection.makefile("wb", 0)
        self.close_connection = False

    def do_GET(self) -> None:
        self._answer()

    def do_POST(self) -> None:
        self._answer()

    def handle(self) -> None:
        try:
            super().handle()
        except OSError:
            self.close_connection = True  # the client left, which is its right

    def finish(self) -> None:
        try:
            super().finish()
        finally:
            self.connection.close()

    def _answer(self) -> None:
        server, parts = self.server_of_git, urlsplit(self.path)
        words = parts.path.strip("/").split("/")
        name = "/".join(words[:2]).removesuffix(".git")
        rest = "/".join(words[2:])
        service = "git-upload-pack" if "git-upload-pack" in (rest, parts.query[8:]) else rest
        server.asked.append(Asked(self.command, self.host, name, service, dict(self.headers)))
        fault = server.faults.get(name, Fault())
        struck = fault.on in ("", self.command)
        key = base64.b64encode(f"x-access-token:{server.password}".encode()).decode()
        if struck and fault.hang:
            server.released.wait(HANG_SECONDS)
            self.close_connection = True
        elif struck and fault.status != 200:
            self._say(fault.status, fault.headers, fault.body)
        elif name in server.moved:
            tail = f"/{rest}" + (f"?{parts.query}" if parts.query else "")
            self._say(301, {"Location": server.moved[name] + tail})
        elif server.password and self.headers.get("Authorization") != f"Basic {key}":
            self._say(401, {"WWW-Authenticate": 'Basic realm="GitHub"'})
        else:
            self._backend(name, rest, parts.query, fault if struck else Fault())

    def _say(self, status: int, headers: Mapping[str, str], body: bytes = b"") -> None:
        for _ in self._body():
            pass
        self.send_response_only(status)
        for key, value in {**headers, "Content-Length": str(len(body))}.items():
            self.send_header(key, value)
        self.end_headers()
        self.wfile.write(body)

    def _backend(self, name: str, rest: str, query: str, fault: Fault) -> None:
        environment = {
            "PATH": os.environ["PATH"],
            "HOME": "/nonexistent",
            "GIT_CONFIG_NOSYSTEM": "1",
            "GIT_PROJECT_ROOT": str(self.server_of_git.folder),
            "GIT_HTTP_EXPORT_ALL": "1",
            "PATH_INFO": f"/{name}.git/{rest}",
            "QUERY_STRING": query,
            "REQUEST_METHOD": self.command,
            "CONTENT_TYPE": self.headers.get("Content-Type", ""),
            "HTTP_CONTENT_ENCODING": self.headers.get("Content-Encoding", ""),
            "GIT_PROTOCOL": self.headers.get("Git-Protocol", ""),
        }
        pipe: Any = subprocess.PIPE
        quiet = subprocess.DEVNULL
        words = ["git", "http-backend"]
        with subprocess.Popen(words, env=environment, stdin=pipe, stdout=pipe, stderr=quiet) as cgi:
            feeder = Thread(target=self._feed, args=(cgi.stdin,), daemon=True)
            feeder.start()
            status, headers = _cgi_headers(cgi.stdout)
            self.send_response_only(status)
            for key, value in headers.items():
                self.send_header(key, value)
            self.send_header("Transfer-Encoding", "chunked")
            self.end_headers()
            self._pass_on(cgi.stdout, fault)
            feeder.join()

    def _feed(self, pipe: Any) -> None:
        try:
            with pipe:
                for piece in self._body():
                    pipe.write(piece)
        except OSError:
            self.close_connection = True

    def _pass_on(self, answer: Any, fault: Fault) -> None:
        left = fault.cut_after
        while piece := answer.read1(CHUNK_BYTES):
            whole, piece = piece, piece[:left]
            left = None if left is None else left - len(piece)
            if piece:
                self.wfile.write(b"%x\r\n%s\r\n" % (len(piece), piece))
            if piece != whole and not fault.smooth:
                self.wfile.write(b"ff\r\n")
                self.close_connection = True
                return
        self.wfile.write(b"0\r\n\r\n")

    def _body(self) -> Iterator[bytes]:
        """What the client sends, piece by piece, however it announces the length."""
        if self.headers.get("Transfer-Encoding") == "chunked":
            while size := int(self.rfile.readline().strip() or b"0", 16):
                yield self.rfile.read(size)
                self.rfile.readline()
            self.rfile.readline()
            return
        left = int(self.headers.get("Content-Length") or 0)
        while left > 0 and (piece := self.rfile.read(min(left, CHUNK_BYTES))):
            left -= len(piece)
            yield piece


def _cgi_headers(answer: Any) -> tuple[int, dict[str, str]]:
    headers: dict[str, str] = {}
    while line := answer.readline().strip():
        key, _, value = line.decode().partition(":")
        headers[key] = value.strip()
    return int(headers.pop("Status", "200 OK").split()[0]), headers
