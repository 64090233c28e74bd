"""The form that lets one exact commit in; it is offered to this machine alone, and to a token.

No cookie and no session: who sends it types the token each time, so that no other page can.
"""

from __future__ import annotations

import hmac
from collections.abc import Mapping
from typing import Annotated
from urllib.parse import parse_qs

from fastapi import APIRouter, Depends, HTTPException, Request
from fastapi import Path as PathPart
from fastapi.responses import RedirectResponse, Response
from sqlalchemy import Engine

from jobs import db, submit
from jobs.config import Settings
from jobs.store import approvals
from web.site import LOOPBACK

LARGEST_BODY_BYTES = 4096
MOST_FIELDS = 8
PLACE = "/jobs/{number}/approve"
BY = "the site's form"
_FORWARDED = ("forwarded", "x-forwarded-for", "x-forwarded-host", "x-real-ip")
_PEERS = frozenset({"127.0.0.1", "::1"})


def is_offered(settings: Settings, request: Request) -> bool:
    """Whether this request comes from this very machine, and there is a token to ask for."""
    host = request.headers.get("host", "").rpartition(":")[0] or request.headers.get("host", "")
    return (
        bool(settings.admin_token.get_secret_value())
        and request.client is not None
        and request.client.host in _PEERS
        and host in LOOPBACK
        and not any(name in request.headers for name in _FORWARDED)
    )


def router(engine: Engine, settings: Settings) -> APIRouter:
    """The one address; without a token it is not there."""
    routes = APIRouter()
    secret = settings.admin_token.get_secret_value()
    if not secret:
        return routes

    async def form(request: Request) -> Mapping[str, str]:
        if not is_offered(settings, request):
            raise HTTPException(403, "this form works on the machine of the site alone")
        if request.headers.get("sec-fetch-site", "same-origin") != "same-origin":
            raise HTTPException(403, "another site sent this form")
        body = bytearray()
        async for chunk in request.stream():
            body += chunk
            if len(body) > LARGEST_BODY_BYTES:
                raise HTTPException(413, "the form is too large")
        try:
            fields = parse_qs(bytes(body).decode("ascii"), max_num_fields=MOST_FIELDS)
        except ValueError:
            raise HTTPException(400, "this is not the form of the page") from None
        given = fields.get("token", [""])[0]
        if not hmac.compare_digest(given.encode(), secret.encode()):
            raise HTTPException(401, "the token is wrong: it is FORKSCOUT_ADMIN_TOKEN")
        return {name: values[0] for name, values in fields.items()}

    typed = Depends(form)

    @routes.post(PLACE)
    def approve(
        number: Annotated[int, PathPart(ge=1, le=2**31 - 1)], fields: Mapping[str, str] = typed
    ) -> Response:
        with db.writing(engine) as session:
            found = approvals.asked_for(session, number)
            if found is None or fields.get("commit") != found.commit:
                raise HTTPException(409, "this job waits for no approval of that commit (any more)")
            now = db.database_now(session)
            place = f"{found.engine}@{found.commit}"
            done = approvals.approve(session, place, by=BY, now=now, note=f"job {number}")
        submit.ring_for(settings, engine, done.jobs)
        return RedirectResponse(f"/jobs/{number}.html", status_code=303)

    return routes
