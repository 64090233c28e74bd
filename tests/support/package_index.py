"""A static package index on loopback that can fail on request, and wheels to put in it."""

from __future__ import annotations

import hashlib
import html
import threading
import zipfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from types import TracebackType
from typing import Any, Self


def make_wheel(
    folder: Path,
    name: str,
    version: str,
    *,
    files: Mapping[str, bytes] | None = None,
    requires: Sequence[str] = (),
    tag: str = "py3-none-any",
) -> Path:
    """A wheel with those files; member names are taken as they are, hostile ones too."""
    folder.mkdir(parents=True, exist_ok=True)
    plain = name.replace("-", "_")
    path = folder / f"{plain}-{version}-{tag}.whl"
    info = f"{plain}-{version}.dist-info"
    needs = "".join(f"Requires-Dist: {each}\n" for each in requires)
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        for member, content in (files or {f"{plain}/__init__.py": b""}).items():
            archive.writestr(member, content)
        archive.writestr(
            f"{info}/METADATA", f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}\n{needs}"
        )
        archive.writestr(
            f"{info}/WHEEL", f"Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: {tag}\n"
        )
        archive.writestr(f"{info}/RECORD", "")
    return path


def sha256_of(path: Path) -> str:
    return hashlib.sha256(path.read_bytes()).hexdigest()


@dataclass
class _Offer:
    path: Path
    yanked: bool
    sha256: str


class PackageIndex:
    """Pages in the "simple" form; `status` makes all of them fail, `stalled` holds files back."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.status = 200
        self.stalled = threading.Event()
        self.asked: list[str] = []
        self._offers: dict[str, dict[str, _Offer]] = {}
        self._released = threading.Event()
        self._server = ThreadingHTTPServer(("127.0.0.1", 0), self._handler())
        self._thread = threading.Thread(target=self._server.serve_forever, args=(0.05,))

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self._server.server_port}/simple"

    def offer(
        self, name: str, version: str, *, yanked: bool = False, claims: str | None = None, **kw: Any
    ) -> Path:
        """Offer a wheel, in place of one of the same name; `claims` is the digest it claims."""
        path = make_wheel(self.folder, name, version, **kw)
        self.offer_file(name, path, yanked=yanked, claims=claims)
        return path

    def offer_file(
        self, name: str, path: Path, *, yanked: bool = False, claims: str | None = None
    ) -> None:
        """Offer a file as it is."""
        known = self._offers.setdefault(name, {})
        known[path.name] = _Offer(path, yanked, claims or sha256_of(path))

    def withdraw(self, name: str) -> None:
        del self._offers[name]

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._released.set()
        self._server.shutdown()
        self._thread.join()
        self._server.server_close()

    def _answer(self, path: str) -> tuple[int, str, bytes]:
        self.asked.append(path)
        if self.status != 200:
            return self.status, "text/plain", b"no"
        kind, _, rest = path.strip("/").partition("/")
        if kind == "simple" and rest in self._offers:
            links = "".join(
                f'<a href="/files/{html.escape(file)}#sha256={offer.sha256}"'
                f"{' data-yanked=' + chr(34) * 2 if offer.yanked else ''}>{html.escape(file)}</a>\n"
                for file, offer in self._offers[rest].items()
            )
            return 200, "text/html", f"<!DOCTYPE html><html><body>{links}</body></html>".encode()
        for offers in self._offers.values():
            if kind == "files" and rest in offers:
                if self.stalled.is_set():
                    self._released.wait(30)
                return 200, "application/octet-stream", offers[rest].path.read_bytes()
        return 404, "text/plain", b"not here"

    def _handler(self) -> type[BaseHTTPRequestHandler]:
        index = self

        class Handler(BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                status, kind, body = index._answer(self.path)
                self.send_response(status)
                self.send_header("Content-Type", kind)
                self.send_header("Content-Length", str(len(body)))
                self.end_headers()
                self.wfile.write(body)

            def log_message(self, *args: Any) -> None:
                """Say nothing."""

            def handle(self) -> None:
                try:
                    super().handle()
                except ConnectionError:
                    return

        return Handler
