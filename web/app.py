"""The live site: pages and JSON of one database, for known host names; takes hints, no orders."""

from __future__ import annotations

import ipaddress
from collections.abc import Sequence
from dataclasses import replace
from datetime import UTC, datetime
from http import HTTPStatus

import structlog
from fastapi import FastAPI, Request
from fastapi.exceptions import RequestValidationError
from fastapi.responses import HTMLResponse, JSONResponse, Response
from fastapi.staticfiles import StaticFiles
from sqlalchemy import Engine, text
from sqlalchemy.exc import SQLAlchemyError
from starlette.datastructures import MutableHeaders
from starlette.exceptions import HTTPException
from starlette.middleware.trustedhost import TrustedHostMiddleware
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from jobs import db
from jobs.config import Settings
from jobs.errors import UsageError
from web import approving, hooks, pages, words
from web.api import v1
from web.render import FOLDER, Renderer
from web.site import LOOPBACK, site_of

HEADERS = {
    "Content-Security-Policy": "default-src 'none'; style-src 'self'; img-src 'self' data:; "
    "base-uri 'none'; form-action 'self'; frame-ancestors 'none'",
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "no-referrer",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Permissions-Policy": "camera=(), geolocation=(), microphone=()",
}
log = structlog.get_logger()

ADVICE = {
    404: "There is no such page. A job or result that is not stored has none.",
    405: "This address is only read: it answers GET and HEAD.",
    422: "That address does not name anything: ids are positive whole numbers.",
    503: "The database does not answer. Try again in a moment.",
}
UNMEANT = "That cannot be done as asked"
MOST_FOLDERS = 8
"""No page of ours lies deeper, so no answer need climb further to the root."""


class Hardened:
    """Adds the security headers to every answer, errors included."""

    def __init__(self, app: ASGIApp) -> None:
        self.app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        async def send_with_headers(message: Message) -> None:
            if message["type"] == "http.response.start":
                MutableHeaders(scope=message).update(HEADERS)
            await send(message)

        await self.app(scope, receive, send_with_headers)


def create_app(engine: Engine, settings: Settings) -> FastAPI:
    """The application over one database."""
    site = site_of(settings)
    renderer = Renderer(site.clean)
    app = FastAPI(title="forkscout", docs_url=None, redoc_url=None, openapi_url=None)
    app.add_middleware(TrustedHostMiddleware, allowed_hosts=hosts(settings), www_redirect=False)
    app.add_middleware(Hardened)
    app.include_router(v1.router(engine, site))
    app.include_router(approving.router(engine, settings))
    app.include_router(hooks.router(engine, settings.hf_webhook_secret.get_secret_value().strip()))
    app.mount("/static", StaticFiles(directory=FOLDER / "static"))

    @app.get("/healthz")
    def healthz() -> Response:
        return JSONResponse({"status": "ok"})

    @app.get("/readyz")
    def readyz() -> Response:
        try:
            with db.reading(engine) as session:
                session.connection().execute(text("SELECT 1"))
        except SQLAlchemyError:
            return JSONResponse({"status": "the database does not answer"}, status_code=503)
        return JSONResponse({"status": "ready"})

    @app.api_route("/{path:path}", methods=["GET", "HEAD"])
    def page(path: str, request: Request) -> Response:
        now = datetime.now(UTC)
        asked = request.query_params.multi_items()
        with db.reading(engine) as session:
            found = site.page(path or "index.html", session, now=now, asked=asked)
        if found is None:
            raise HTTPException(404)
        if approving.is_offered(settings, request):
            found = replace(found, values={**found.values, "may_approve": True})
        return HTMLResponse(renderer.html(found, now=now))

    def failed(request: Request, status: int, said: str) -> Response:
        meant = status == 422 and bool(said)
        advice = said if meant else ADVICE.get(status, said)
        if request.url.path.startswith(("/api/", hooks.PLACE)):
            detail = said if said and said != HTTPStatus(status).phrase else advice
            return JSONResponse({"detail": site.clean(detail)}, status_code=status)
        shown = pages.missing(
            status,
            title=UNMEANT if meant else HTTPStatus(status).phrase,
            advice=advice,
            path="/".join(request.url.path.lstrip("/").split("/")[: MOST_FOLDERS + 1]),
        )
        return HTMLResponse(renderer.html(shown, now=datetime.now(UTC)), status_code=status)

    @app.exception_handler(HTTPException)
    def refused(request: Request, error: HTTPException) -> Response:
        return failed(request, error.status_code, str(error.detail))

    @app.exception_handler(UsageError)
    def unmeant(request: Request, error: UsageError) -> Response:
        return failed(request, 422, words.sentence(error.detail, error.advice))

    @app.exception_handler(SQLAlchemyError)
    def unread(request: Request, error: SQLAlchemyError) -> Response:
        log.error("page not read", path=request.url.path[:200], cause=str(error)[:500])
        return failed(request, 503, "")

    @app.exception_handler(RequestValidationError)
    def misread(request: Request, _error: RequestValidationError) -> Response:
        return failed(request, 422, "")

    return app


def hosts(settings: Settings) -> Sequence[str]:
    """The host names this site answers to; an address that means "everywhere" is no name."""
    named = [name.strip() for name in settings.hosts.split(",") if name.strip()]
    return (*LOOPBACK, *([] if _is_everywhere(settings.host) else [settings.host]), *named)


def _is_everywhere(host: str) -> bool:
    try:
        return ipaddress.ip_address(host).is_unspecified
    except ValueError:
        return not host
