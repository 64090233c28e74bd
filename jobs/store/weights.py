"""Queries on which weight files are wanted, and by whom; the caller commits."""

from __future__ import annotations

from collections.abc import Iterable

from sqlmodel import Session, col, select

from jobs.store.work import LIVE, take_turn
from jobs.tables import JobRow, ModelFileRow, StackRow


def digests_of(model: ModelFileRow) -> set[str]:
    """The digest a model file is known by, and those of its set's files."""
    return {model.sha256, *(str(sha) for sha in model.source.get("shards") or ())}


def needed(session: Session) -> set[str]:
    """Digests that a queued, blocked, leased or running job needs."""
    number = col(JobRow.payload)["model_file_id"].as_integer()
    jobs = select(number).where(col(JobRow.state).in_(LIVE), number.is_not(None))
    ids = set(session.exec(jobs))
    models = session.exec(select(ModelFileRow).where(col(ModelFileRow.id).in_(ids)))
    return _digests(models)


def asked_for(session: Session) -> set[str]:
    """Digests that a stack benches."""
    names = set(session.exec(select(StackRow.target)))
    models = session.exec(select(ModelFileRow).where(col(ModelFileRow.name).in_(names)))
    return _digests(models)


def rows_with(session: Session, sha256: str) -> list[ModelFileRow]:
    """The model files that this digest is, or is a part of."""
    query = select(ModelFileRow).order_by(col(ModelFileRow.name))
    return [row for row in session.exec(query) if sha256 in digests_of(row)]


def cannot_go(session: Session) -> set[str]:
    """Digests that a living job needs, or that no source would bring again."""
    unsourced = _digests(row for row in session.exec(select(ModelFileRow)) if not row.source)
    return needed(session) | unsourced


def let_go(session: Session, sha256: str) -> bool:
    """Whether a file may be removed: no living job needs it. Its rows say at once that it is gone.

    Jobs that are queued after this transaction find it absent and fetch it again.
    """
    take_turn(session)
    if sha256 in needed(session):
        return False
    for row in rows_with(session, sha256):
        row.present = False
        session.add(row)
    session.flush()
    return True


def say_present(session: Session, sha256: str, size_bytes: int) -> list[ModelFileRow]:
    """Every row of this digest is in the store."""
    rows = [row for row in rows_with(session, sha256) if row.sha256 == sha256]
    for row in rows:
        row.present, row.size_bytes = True, size_bytes
        session.add(row)
    session.flush()
    return rows


def _digests(models: Iterable[ModelFileRow]) -> set[str]:
    return {digest for model in models for digest in digests_of(model)}
