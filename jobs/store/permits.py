"""Which commit of an engine a retest may run, and why it may run none; reads, queues nothing."""

from __future__ import annotations

from collections.abc import Sequence, Set
from datetime import datetime
from typing import cast

from sqlmodel import Session, col, select

from jobs.engines.registry import FAMILIES
from jobs.model import Kind, Trust
from jobs.negatives import Grounds
from jobs.payloads import by_dockerfile
from jobs.planner import JobRequest
from jobs.store import approvals, results
from jobs.store.grounds import newest_revision
from jobs.tables import EngineRow, RevisionRow

MOVED_ON = frozenset({"revision"})


def refusal(engine: EngineRow, *, by_hand: bool) -> str:
    """Why nothing of an engine may be queued by itself, or by a person."""
    if engine.family not in FAMILIES:
        return f"the family {engine.family} cannot be built yet"
    if engine.trust == Trust.NEVER:
        return f"{engine.name} is never built: its trust is 'never'"
    if engine.retired and not by_hand:
        return f"{engine.name} is no longer watched"
    return ""


def commit_for(
    session: Session,
    engine: EngineRow,
    newest: RevisionRow | None,
    then: Grounds,
    kinds: Set[str],
    now: datetime,
) -> RevisionRow | None:
    """The newest revision; where that waits for a person, one that is approved and can answer.

    An approved commit that already failed can only answer what moved beside the engine.
    """
    newest = newest or newest_revision(session, cast(int, engine.id))
    if newest is None or approvals.missing(session, cast(int, newest.id), now) is None:
        return newest
    query = select(RevisionRow).where(
        RevisionRow.engine_id == engine.id,
        col(RevisionRow.commit).in_(approvals.standing_commits(session, engine, now)),
    )
    last = (col(RevisionRow.order_key).desc(), col(RevisionRow.id).desc())
    approved = session.exec(query.order_by(*last).limit(1)).first()
    if approved is None:
        return newest
    place = (approved.order_key, cast(int, approved.id))
    answers = place > then.place if kinds <= MOVED_ON else place >= then.place
    return approved if answers else newest


def word_missing(session: Session, requests: Sequence[JobRequest], now: datetime) -> str:
    """What a bench of a finished build waits for; a build that is still to be made waits itself."""
    for build in (each for each in requests if each.kind is Kind.BUILD):
        number = int(build.payload["revision_id"])
        found = approvals.missing(session, number, now, dockerfile=by_dockerfile(build.payload))
        if found and results.is_made(session, str(build.payload["build_identity"]), number):
            return f"{found.says}: {found.advice}"
    return ""
