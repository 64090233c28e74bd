"""Takes what the model hub's webhook says as a hint to look; it believes none of it."""

from __future__ import annotations

import hmac
import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from fastapi import APIRouter, Depends, HTTPException, Request
from fastapi.responses import JSONResponse, Response
from sqlalchemy import Engine

from jobs import clock, db
from jobs.store import hub

PLACE = "/hooks/huggingface"
LARGEST_BODY_BYTES = 64 * 1024
MAIN = "refs/heads/main"

_HUB_ID = re.compile(r"[A-Za-z0-9]{1,64}", re.ASCII)
_NAME = re.compile(r"[A-Za-z0-9][\w.-]{0,95}/[A-Za-z0-9_][\w.-]{0,95}", re.ASCII)
_SCOPE = re.compile(r"repo(?:\.[a-z_.]{1,40})?", re.ASCII)
_SHA = re.compile(r"[0-9a-f]{40}", re.ASCII)


@dataclass(frozen=True)
class Hint:
    """A model repository that is said to have moved; `new_sha` is empty where none is named."""

    hub_id: str
    name: str
    scope: str
    new_sha: str


def read_hint(body: bytes) -> Hint | None:
    """The hint in a delivery; None for what is no news of a model's main branch.

    Raises `ValueError` where the body is no delivery. The new commit is taken from the raw JSON:
    huggingface_hub's own parser never finds it.
    """
    try:
        said = json.loads(body)
    except RecursionError:
        raise ValueError("nested too deep") from None
    event, repo = _part(said, "event"), _part(said, "repo")
    if not isinstance(event, Mapping) or not isinstance(repo, Mapping):
        raise ValueError("no event of a repository")
    hub_id, name = _fit(_HUB_ID, repo.get("id")), _fit(_NAME, repo.get("name"))
    if not hub_id or not name or not isinstance(event.get("scope"), str):
        raise ValueError("no id, name or scope")
    scope = _fit(_SCOPE, event["scope"])
    if repo.get("type") != "model" or not scope:
        return None
    refs = said.get("updatedRefs")
    if refs is None:
        return Hint(hub_id, name, scope, _fit(_SHA, repo.get("headSha")))
    if not isinstance(refs, list):
        raise ValueError("refs are no list")
    main = [ref for ref in refs if _part(ref, "ref") == MAIN]
    if refs and not main:
        return None
    new_sha = _fit(_SHA, _part(main[-1], "newSha")) if main else ""
    return Hint(hub_id, name, scope, new_sha or _fit(_SHA, repo.get("headSha")))


def router(engine: Engine, secret: str) -> APIRouter:
    """The one address; without a secret nothing is taken, and it is not there."""
    routes = APIRouter()
    if not secret:
        return routes

    async def delivery(request: Request) -> bytes:
        given = request.headers.get("X-Webhook-Secret", "")
        if not hmac.compare_digest(given.encode("latin-1"), secret.encode()):
            raise HTTPException(401, "the secret is wrong")
        body = bytearray()
        async for chunk in request.stream():
            body += chunk
            if len(body) > LARGEST_BODY_BYTES:
                raise HTTPException(413, "the delivery is too large")
        return bytes(body)

    bounded = Depends(delivery)

    @routes.post(PLACE)
    def take(body: bytes = bounded) -> Response:
        try:
            hint = read_hint(body)
        except ValueError:
            return _said("not understood", 400)
        if hint is None:
            return _said("ignored", 202)
        with db.writing(engine) as session:
            is_new = hub.add_hint(
                session,
                hint.hub_id,
                name=hint.name,
                scope=hint.scope,
                new_sha=hint.new_sha,
                now=clock.now(),
            )
        return _said("noted" if is_new else "known", 202)

    return routes


def _said(status: str, code: int) -> Response:
    return JSONResponse({"status": status}, status_code=code)


def _part(value: Any, key: str) -> Any:
    return value.get(key) if isinstance(value, Mapping) else None


def _fit(pattern: re.Pattern[str], value: object) -> str:
    return value if isinstance(value, str) and pattern.fullmatch(value) else ""
