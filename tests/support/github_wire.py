"""How the stand-in for GitHub is reached, what can go wrong on the wire, and what was asked."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler
from typing import Any

import requests
from support.github_json import API

from scout.github.client import BoundedAdapter


class ToLoopback(BoundedAdapter):
    """Leads GitHub's address to the stand-in and every other address nowhere."""

    def __init__(self, base: str, **limits: float) -> None:
        self.base = base
        super().__init__(**limits)

    def send(self, request: requests.PreparedRequest, *args: Any, **kwargs: Any) -> Any:
        url = request.url or ""
        if not url.startswith(f"{API}/"):
            raise requests.exceptions.ConnectionError(f"a test must not ask {url}")
        request.url = self.base + url.removeprefix(API)
        return super().send(request, *args, **{**kwargs, "proxies": {}})


@dataclass
class Fault:
    """What happens, so many times, to requests whose path and query match `where`."""

    where: str
    times: int = 1
    status: int = 200
    body: bytes | None = None
    headers: dict[str, str] = field(default_factory=dict)
    change: Callable[[Any], Any] | None = None
    header_seconds: float = 0.0
    byte_seconds: float = 0.0
    cut_after: int | None = None


@dataclass(frozen=True)
class Asked:
    """One request and what became of it."""

    path: str
    status: int
    charged: bool
    authorization: str | None
    if_none_match: str | None
    bucket: str = "core"
    version: str | None = None


@dataclass(frozen=True)
class Reply:
    """What was answered, by the path of GitHub's description, for the judge."""

    template: str
    status: int
    body: Any


def write_reply(
    handler: BaseHTTPRequestHandler,
    status: int,
    raw: bytes,
    headers: dict[str, str],
    fault: Fault,
) -> None:
    """Put a reply on the wire, with what its fault does to it."""
    if fault.header_seconds:
        time.sleep(fault.header_seconds)
    handler.send_response_only(status)
    for name, value in headers.items():
        if value:
            handler.send_header(name, value)
    if status not in (204, 304):
        handler.send_header("Content-Length", str(len(raw)))
    handler.end_headers()
    if fault.cut_after is not None:
        handler.wfile.write(raw[: fault.cut_after])
        handler.wfile.flush()
        handler.close_connection = True
        return
    if not fault.byte_seconds:
        handler.wfile.write(raw)
        return
    for start in range(len(raw)):
        handler.wfile.write(raw[start : start + 1])
        handler.wfile.flush()
        time.sleep(fault.byte_seconds)
