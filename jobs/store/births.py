"""What the end of a job says of what works: a negative is born, or overturned; ends no job."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime

from sqlmodel import Session, col, select

from jobs import negatives
from jobs.model import Blame, Kind, Lane, State, Validity
from jobs.negative_tables import NegativeRow
from jobs.store import grounds, preflights, retests, rigs
from jobs.store import negatives as store
from jobs.store.grounds import Asked
from jobs.store.negatives import Said
from jobs.tables import BuildRow, JobRow, ResultRow, RevisionRow


@dataclass(frozen=True)
class Known:
    """What came of an end: a negative that was born, or those that were overturned."""

    born: NegativeRow | None = None
    overturned: Sequence[NegativeRow] = ()


NOTHING = Known()


def job_ended(session: Session, job_id: int, now: datetime, *, days: float) -> Known:
    """Judge a job in the transaction that ended it; most ends say nothing.

    Neither does one of a rig that nobody believes, whatever it measured.
    `days` is how long a first negative stands.
    """
    job = session.get_one(JobRow, job_id)
    state, kind = State(job.state), Kind(job.kind)
    ended = state in (State.FAILED, State.SUCCEEDED) and kind in (Kind.BUILD, Kind.BENCH)
    if not ended or job.lane == Lane.HEALTH:
        return NOTHING
    result = session.exec(select(ResultRow).where(ResultRow.job_id == job_id)).first()
    if (result is not None and result.doubt) or rigs.is_quarantined(session, job.queue):
        return NOTHING
    works = state is State.SUCCEEDED and (kind is Kind.BUILD or _is_ok(result))
    said = None if works else _said(job, state, kind, result, days)
    if not works and said is None:
        return NOTHING
    asked = grounds.of_job(session, job)
    if asked is None:
        return NOTHING
    if said is None:
        return Known(overturned=store.overturn(session, asked, job, now))
    return Known(born=_born(session, asked, said, now))


def _is_ok(result: ResultRow | None) -> bool:
    return result is not None and result.validity == Validity.OK.value


def _said(
    job: JobRow, state: State, kind: Kind, result: ResultRow | None, days: float
) -> Said | None:
    """The negative that this end is, or None."""
    if result is not None and negatives.measured_as_negative(Validity(result.validity)):
        outcome, failure_class, why = store.MEASURED, result.validity, job.message
        why = why or result.validity_reason
    elif negatives.failed_as_negative(
        kind, state, Blame(job.blame) if job.blame else None, job.failure_class or ""
    ):
        outcome, failure_class, why = store.FAILED, job.failure_class or "", job.message
    else:
        return None
    return Said(
        outcome=outcome,
        failure_class=failure_class,
        why=why,
        source=kind.value,
        blame=job.blame or "",
        job_id=job.id,
        identity=job.identity,
        days=days,
    )


def _born(session: Session, asked: Asked, said: Said, now: datetime) -> NegativeRow | None:
    standing = store.standing_on(session, asked.question)
    known = grounds.read(standing) if standing else None
    if not negatives.tells_more(asked.grounds, known) or _works_later(session, asked):
        return None
    row = store.bear(session, asked, said, now)
    if standing is None:
        doubt(session, row, asked, now)
    return row


def doubt(session: Session, row: NegativeRow, asked: Asked, now: datetime) -> list[JobRow]:
    """Let the pre-flight speak of what does not fit: where it disagrees, a trial is queued."""
    if not negatives.is_about_memory(row.failure_class):
        return []
    found = preflights.opinion(session, asked)
    row.preflight = found.sentence
    session.add(row)
    if not found.disagrees:
        return []
    return retests.requeue(session, row, [negatives.doubted(found.sentence)], now)


def _works_later(session: Session, asked: Asked) -> bool:
    """Whether a newer revision answered the same question well: then it is not impossible."""
    revision = asked.revision
    if revision is None:
        return False
    newer = (
        RevisionRow.engine_id == revision.engine_id,
        col(RevisionRow.order_key) > revision.order_key,
    )
    if asked.question.kind is Kind.BUILD:
        built = (
            select(BuildRow.id)
            .join(RevisionRow, col(RevisionRow.id) == col(BuildRow.revision_id))
            .where(*newer, BuildRow.target == asked.question.rig)
        )
        return session.exec(built.limit(1)).first() is not None
    query = (
        select(JobRow)
        .join(ResultRow, col(ResultRow.job_id) == col(JobRow.id))
        .join(RevisionRow, col(RevisionRow.id) == col(ResultRow.revision_id))
        .where(
            *newer,
            ResultRow.validity == Validity.OK.value,
            ResultRow.doubt == "",
            ResultRow.model_file_id == asked.files["target"].id,
            ResultRow.context_tokens == asked.question.context_tokens,
        )
    )
    keys = set(asked.question.keys)
    found = (grounds.of_job(session, job) for job in session.exec(query))
    return any(other is not None and keys & set(other.question.keys) for other in found)
