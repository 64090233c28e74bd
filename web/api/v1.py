"""The JSON read API: strict JSON, bounded answers, the same redaction as the pages."""

from __future__ import annotations

import re
from typing import Annotated, Any

from fastapi import APIRouter, HTTPException, Path, Query, Request
from fastapi.responses import PlainTextResponse, Response
from pydantic import BeforeValidator
from sqlalchemy import Engine

from jobs import db
from jobs.store import (
    approvals,
    board,
    builds,
    chains,
    led,
    overview,
    reasons,
    shown_negatives,
    source_health,
    workshop,
)
from web import fit_site, pages, plain
from web.logs import piece
from web.site import Site

LARGEST_ID = 2**31 - 1
LARGEST_OFFSET = 2**53
LONGEST_NAME = 200
MOST_JOBS = 500

READ = ["GET", "HEAD"]


def _plain_number(text: object) -> object:
    """One spelling for each number: neither `+1`, `1.0` nor `1_0` names job 1 or 10."""
    if isinstance(text, str) and not re.fullmatch(r"0|[1-9][0-9]*", text, re.ASCII):
        raise ValueError("not a whole number in plain digits")
    return text


Number = Annotated[int, BeforeValidator(_plain_number)]
Id = Annotated[Number, Path(ge=1, le=LARGEST_ID)]


class StrictJson(Response):
    """JSON that any parser takes: NaN is refused before it leaves."""

    media_type = "application/json"

    def render(self, content: Any) -> bytes:
        return plain.text(content).encode()


def router(engine: Engine, site: Site) -> APIRouter:
    """The routes below `/api/v1`."""
    api = APIRouter(prefix="/api/v1")

    @api.api_route("/leaderboard", methods=READ)
    def leaderboard() -> Response:
        with db.reading(engine) as session:
            return StrictJson({"groups": plain.boards(site.boards(session), site.clean)})

    @api.api_route("/jobs", methods=READ)
    def jobs(limit: Annotated[Number, Query(ge=1, le=MOST_JOBS)] = 100) -> Response:
        with db.reading(engine) as session:
            found = overview.jobs(session, limit=limit)
        return StrictJson({"jobs": plain.plain(found, site.clean)})

    @api.api_route("/jobs/{job_id}", methods=READ)
    def job(job_id: Id) -> Response:
        with db.reading(engine) as session:
            found = overview.job(session, job_id, now=db.database_now(session))
        if found is None:
            raise HTTPException(404, f"There is no job {job_id}.")
        return StrictJson({**plain.plain(found, site.clean), "why": site.clean(pages.why(found))})

    @api.api_route("/jobs/{job_id}/why", methods=READ)
    def why(job_id: Id) -> Response:
        with db.reading(engine) as session:
            found = reasons.find(session, job_id, db.database_now(session), share=site.share)
        if found is None:
            raise HTTPException(404, f"There is no job {job_id}.")
        return StrictJson(plain.plain(found, site.clean))

    @api.api_route("/builds", methods=READ)
    def all_builds(limit: Annotated[Number, Query(ge=1, le=MOST_JOBS)] = 100) -> Response:
        with db.reading(engine) as session:
            found = builds.lines(session, limit=limit)
        return StrictJson({"builds": plain.plain(found, site.clean)})

    @api.api_route("/builds/{build_id}", methods=READ)
    def build(build_id: Id) -> Response:
        with db.reading(engine) as session:
            found = builds.find(session, build_id)
            options = builds.options_of(session, build_id)
        if found is None:
            raise HTTPException(404, f"There is no build {build_id}.")
        told = {**plain.plain(found, site.clean), "options": plain.plain(options, site.clean)}
        return StrictJson(told)

    @api.api_route("/approvals", methods=READ)
    def all_approvals() -> Response:
        with db.reading(engine) as session:
            stand = approvals.approvals(session, db.database_now(session), everything=True)
            told = {"waiting": approvals.waiting(session), "approvals": stand}
        return StrictJson(plain.plain(told, site.clean))

    @api.api_route("/queue", methods=READ)
    def queue() -> Response:
        with db.reading(engine) as session:
            found = overview.queue(session, now=db.database_now(session))
        return StrictJson(plain.plain(found, site.clean))

    @api.api_route("/negatives", methods=READ)
    def negatives() -> Response:
        with db.reading(engine) as session:
            found = shown_negatives.board(session, db.database_now(session))
        return StrictJson(plain.plain(found, site.clean))

    @api.api_route("/negatives/{negative_id}", methods=READ)
    def negative(negative_id: Id) -> Response:
        with db.reading(engine) as session:
            found = shown_negatives.chain(session, negative_id, db.database_now(session))
        if not found:
            raise HTTPException(404, f"There is no negative {negative_id}.")
        return StrictJson({"chain": plain.plain(found, site.clean)})

    @api.api_route("/rigs", methods=READ)
    def rigs() -> Response:
        with db.reading(engine) as session:
            return StrictJson({"rigs": plain.plain(workshop.shown_rigs(session), site.clean)})

    @api.api_route("/workers", methods=READ)
    def workers() -> Response:
        with db.reading(engine) as session:
            now = db.database_now(session)
            found = workshop.workshop(session, now, silent_seconds=site.silent_seconds)
        shown = {"at": found.at, "workers": found.workers, "alarms": found.alarms}
        return StrictJson(plain.plain(shown, site.clean))

    @api.api_route("/jobs/{job_id}/log", methods=READ)
    def log(job_id: Id, offset: Annotated[Number, Query(ge=0, le=LARGEST_OFFSET)] = 0) -> Response:
        with db.reading(engine) as session:
            found = overview.job(session, job_id, now=db.database_now(session))
        if found is None:
            raise HTTPException(404, f"There is no job {job_id}.")
        part = piece(site.log_of(job_id), offset=offset, ended=found.state not in pages.LIVE)
        if part is None:
            raise HTTPException(404, f"Job {job_id} has written no log.")
        headers = {"X-Next-Offset": str(part.next_offset), "X-Log-Size": str(part.size)}
        return PlainTextResponse(site.clean(part.text), headers=headers)

    @api.api_route("/events/{event_id}", methods=READ)
    def event(event_id: Id) -> Response:
        with db.reading(engine) as session:
            found = led.event(session, event_id)
        if found is None:
            raise HTTPException(404, f"There is no event {event_id}.")
        return StrictJson(plain.plain(found, site.clean))

    @api.api_route("/sources", methods=READ)
    def sources() -> Response:
        with db.reading(engine) as session:
            return StrictJson(plain.plain(source_health.outlook(session), site.clean))

    @api.api_route("/forks", methods=READ)
    def forks() -> Response:
        with db.reading(engine) as session:
            return StrictJson(plain.plain(chains.found(session), site.clean))

    @api.api_route("/forks/{fork_id}", methods=READ)
    def fork(fork_id: Id) -> Response:
        with db.reading(engine) as session:
            found = chains.fork(session, fork_id)
        if found is None:
            raise HTTPException(404, f"There is no watched fork {fork_id}.")
        return StrictJson(plain.plain(found, site.clean))

    @api.api_route("/lineage/{name}", methods=READ)
    def lineage(name: Annotated[str, Path(max_length=LONGEST_NAME)]) -> Response:
        with db.reading(engine) as session:
            found = chains.chain_named(session, name)
        if not found:
            raise HTTPException(404, "There is no engine of that name with a repository.")
        return StrictJson({"engine": site.clean(name), "chain": plain.plain(found, site.clean)})

    @api.api_route("/fit", methods=READ)
    def fit(request: Request) -> Response:
        with db.reading(engine) as session:
            asked = request.query_params.multi_items()
            return StrictJson(fit_site.fit_json(session, asked, site.clean))

    @api.api_route("/models", methods=READ)
    def models() -> Response:
        with db.reading(engine) as session:
            return StrictJson({"models": fit_site.models_json(session, site.clean)})

    @api.api_route("/results/{result_id}", methods=READ)
    def result(result_id: Id) -> Response:
        with db.reading(engine) as session:
            found = board.result(session, result_id)
        if found is None:
            raise HTTPException(404, f"There is no result {result_id}.")
        stored = plain.plain(found, site.clean)
        return StrictJson({**stored, "entry": plain.entry(found.entry, site.clean)})

    return api
