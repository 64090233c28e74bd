"""Where a fetch has to run so that a rig's benches find its file; the caller commits.

A queue's store is known from the last start of its worker. Where the workers that fetch look into
the rig's store as well, they fetch; where they do not, the rig's own worker does.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from datetime import datetime

from sqlmodel import Session, col, select

from jobs import planner
from jobs.model import Kind
from jobs.planner import JobRequest
from jobs.rig_tables import WorkerStoreRow
from jobs.tables import ModelFileRow, StoredWeightRow

FETCHING = "build"
BENCH = "bench."


def say_store(session: Session, worker: str, *, queue: str, store: str, now: datetime) -> None:
    """A worker says which store it looks into."""
    row = session.get(WorkerStoreRow, worker)
    row = row or WorkerStoreRow(worker=worker, queue=queue, store=store, since=now)
    row.queue, row.store, row.since = queue, store, now
    session.add(row)
    session.flush()


def users_of(session: Session) -> dict[str, list[str]]:
    """The queues of each store, by its name."""
    found: dict[str, list[str]] = {}
    for row in session.exec(select(WorkerStoreRow).order_by(col(WorkerStoreRow.queue))):
        queues = found.setdefault(row.store, [])
        queues += [row.queue] if row.queue not in queues else []
    return found


def placed(session: Session, request: JobRequest) -> JobRequest:
    """The request in the queue whose worker fills the store that it is for."""
    if request.kind is not Kind.FETCH_MODEL or not request.rig:
        return request
    model = session.get(ModelFileRow, request.payload["model_file_id"])
    if model is None:
        return request
    store, fetching = store_of_rig(session, request.rig), _stores(session, FETCHING)
    if store is None or store in fetching or not fetching:
        return replace(request, identity=planner.fetch_identity(model.sha256))
    return replace(
        request,
        queue=f"{BENCH}{request.rig}",
        identity=planner.fetch_identity(model.sha256, store),
    )


def is_held(session: Session, request: JobRequest) -> bool:
    """Whether the file of a fetch lies where it is wanted; a store nobody named is any store."""
    query = select(StoredWeightRow.store).where(
        StoredWeightRow.model_file_id == request.payload["model_file_id"]
    )
    wanted = store_of_rig(session, request.rig) if request.rig else None
    if wanted is not None:
        query = query.where(StoredWeightRow.store == wanted)
    return session.exec(query.limit(1)).first() is not None


def store_of_rig(session: Session, rig: str) -> str | None:
    """The store in which a rig's benches look; None where its worker never said."""
    return next(iter(_stores(session, f"{BENCH}{rig}")), None)


def _stores(session: Session, queue: str) -> Sequence[str]:
    """The stores of a queue's workers, the newest first."""
    query = select(WorkerStoreRow.store).where(WorkerStoreRow.queue == queue)
    return session.exec(query.order_by(col(WorkerStoreRow.since).desc())).all()
