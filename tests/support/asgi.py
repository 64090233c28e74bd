"""One request to an ASGI application in this process, without a socket."""

from __future__ import annotations

import asyncio
from typing import Any

import httpx


def ask(
    app: Any, path: str, *, method: str = "GET", host: str = "localhost", **sent: Any
) -> httpx.Response:
    """The application's answer; `path` is sent as it is written, dots and all."""

    async def once() -> httpx.Response:
        transport = httpx.ASGITransport(app=app, raise_app_exceptions=True)
        async with httpx.AsyncClient(transport=transport) as client:
            url = httpx.URL(f"http://{host}").copy_with(raw_path=path.encode())
            return await client.request(method, url, **sent)

    return asyncio.run(once())
