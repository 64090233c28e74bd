"""The JSON read API: strict JSON, bounded answers, the same redaction as the pages."""

from __future__ import annotations

from typing import Annotated, Any

from fastapi import APIRouter, HTTPException, Path, Query
from fastapi.responses import PlainTextResponse, Response
from sqlalchemy import Engine

from jobs import db
from jobs.store import board, overview
from web import pages, plain
from web.logs import piece
from web.site import Site

LARGEST_ID = 2**31 - 1
LARGEST_OFFSET = 2**53
MOST_JOBS = 500

Id = Annotated[int, Path(ge=1, le=LARGEST_ID)]


class StrictJson(Response):
    """JSON that any parser takes: NaN is refused before it leaves."""

    media_type = "application/json"

    def render(self, content: Any) -> bytes:
        return plain.text(content).encode()


def router(engine: Engine, site: Site) -> APIRouter:
    """The routes below `/api/v1`."""
    api = APIRouter(prefix="/api/v1")

    @api.get("/leaderboard")
    def leaderboard() -> Response:
        with db.reading(engine) as session:
            return StrictJson({"groups": plain.boards(site.boards(session), site.clean)})

    @api.get("/jobs")
    def jobs(limit: Annotated[int, Query(ge=1, le=MOST_JOBS)] = 100) -> Response:
        with db.reading(engine) as session:
            found = overview.jobs(session, limit=limit)
        return StrictJson({"jobs": plain.plain(found, site.clean)})

    @api.get("/jobs/{job_id}")
    def job(job_id: Id) -> Response:
        with db.reading(engine) as session:
            found = overview.job(session, job_id)
        if found is None:
            raise HTTPException(404, f"There is no job {job_id}.")
        return StrictJson({**plain.plain(found, site.clean), "why": site.clean(pages.why(found))})

    @api.get("/jobs/{job_id}/log")
    def log(job_id: Id, offset: Annotated[int, Query(ge=0, le=LARGEST_OFFSET)] = 0) -> Response:
        with db.reading(engine) as session:
            found = overview.job(session, job_id)
        if found is None:
            raise HTTPException(404, f"There is no job {job_id}.")
        part = piece(site.log_of(job_id), offset=offset, ended=found.state not in pages.LIVE)
        if part is None:
            raise HTTPException(404, f"Job {job_id} has written no log.")
        headers = {"X-Next-Offset": str(part.next_offset), "X-Log-Size": str(part.size)}
        return PlainTextResponse(site.clean(part.text), headers=headers)

    @api.get("/results/{result_id}")
    def result(result_id: Id) -> Response:
        with db.reading(engine) as session:
            found = board.result(session, result_id)
        if found is None:
            raise HTTPException(404, f"There is no result {result_id}.")
        stored = plain.plain(found, site.clean)
        return StrictJson({**stored, "entry": plain.entry(found.entry, site.clean)})

    return api
