"""Queries on which weight files are wanted, by whom, and which stores hold them; never commits."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from datetime import datetime

from sqlalchemy import delete
from sqlmodel import Session, col, select

from jobs.store.work import LIVE, take_turn
from jobs.tables import JobRow, ModelFileRow, StackRow, StoredWeightRow

FILES_OF_A_JOB = ("model_file_id", "drafter_file_id", "projector_file_id")
"""Where a payload names the files that its job loads."""


def digests_of(model: ModelFileRow) -> set[str]:
    """The digest a model file is known by, and those of its set's files."""
    return {model.sha256, *(str(sha) for sha in model.source.get("shards") or ())}


def needed(session: Session) -> set[str]:
    """Digests that a queued, blocked, leased or running job needs."""
    ids: set[int] = set()
    for name in FILES_OF_A_JOB:
        number = col(JobRow.payload)[name].as_integer()
        jobs = select(number).where(col(JobRow.state).in_(LIVE), number.is_not(None))
        ids |= set(session.exec(jobs))
    models = session.exec(select(ModelFileRow).where(col(ModelFileRow.id).in_(ids)))
    return _digests(models)


def asked_for(session: Session) -> set[str]:
    """Digests that a stack benches."""
    stacks = session.exec(select(StackRow)).all()
    names = {name for row in stacks for name in (row.target, row.drafter, row.mmproj) if name}
    models = session.exec(select(ModelFileRow).where(col(ModelFileRow.name).in_(names)))
    return _digests(models)


def rows_with(session: Session, sha256: str) -> list[ModelFileRow]:
    """The model files that this digest is, or is a part of."""
    query = select(ModelFileRow).order_by(col(ModelFileRow.name))
    return [row for row in session.exec(query) if sha256 in digests_of(row)]


def rows_of(session: Session, sha256: str) -> list[ModelFileRow]:
    """The model files that this digest is."""
    return [row for row in rows_with(session, sha256) if row.sha256 == sha256]


def cannot_go(session: Session) -> set[str]:
    """Digests that a living job needs, or that no source would bring again."""
    unsourced = _digests(row for row in session.exec(select(ModelFileRow)) if not row.source)
    return needed(session) | unsourced


def held_anywhere(session: Session) -> set[str]:
    """Digests of the model files that lie in some store."""
    query = select(ModelFileRow.sha256).join(StoredWeightRow)
    return set(session.exec(query.distinct()))


def stores_of(session: Session, model_file_id: int) -> list[str]:
    """The stores that a model file lies in."""
    query = select(StoredWeightRow.store).where(StoredWeightRow.model_file_id == model_file_id)
    return list(session.exec(query.order_by(StoredWeightRow.store)))


def let_go(session: Session, sha256: str, *, store: str) -> bool:
    """Whether a store may lose a file: no living job needs it. Its rows say at once that it did.

    Jobs that are queued after this transaction find it absent and fetch it again.
    """
    take_turn(session)
    if sha256 in needed(session):
        return False
    ids = [row.id for row in rows_with(session, sha256)]
    session.execute(
        delete(StoredWeightRow).where(
            col(StoredWeightRow.store) == store, col(StoredWeightRow.model_file_id).in_(ids)
        )
    )
    session.flush()
    return True


def say_stored(
    session: Session, sha256: str, size_bytes: int, *, store: str, now: datetime
) -> list[ModelFileRow]:
    """Every row of this digest lies in that store, whole."""
    take_turn(session)
    rows = rows_of(session, sha256)
    for row in rows:
        row.size_bytes = size_bytes
        session.add(row)
        _note(session, row, store, now)
    session.flush()
    return rows


def take_stock(session: Session, digests: Collection[str], *, store: str, now: datetime) -> None:
    """That store holds these files and sets and no others, whatever was said of it before."""
    take_turn(session)
    models = {row.id: row for row in session.exec(select(ModelFileRow))}
    for known in session.exec(select(StoredWeightRow).where(StoredWeightRow.store == store)):
        if models[known.model_file_id].sha256 not in digests:
            session.delete(known)
    for row in models.values():
        if row.sha256 in digests:
            _note(session, row, store, now)
    session.flush()


def _note(session: Session, row: ModelFileRow, store: str, now: datetime) -> None:
    if session.get(StoredWeightRow, (row.id, store)) is None:
        session.add(StoredWeightRow(model_file_id=row.id or 0, store=store, since=now))


def _digests(models: Iterable[ModelFileRow]) -> set[str]:
    return {digest for model in models for digest in digests_of(model)}
