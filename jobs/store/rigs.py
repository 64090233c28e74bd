"""Queries about the health of rigs: goldens, their runs, quarantine, doubt; the caller commits."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from datetime import datetime
from typing import Any, cast

from sqlalchemy import ColumnElement, func, update
from sqlmodel import Session, col, select

from jobs import health
from jobs.dialect import wire
from jobs.errors import UsageError
from jobs.health import Band, Health, Known, Measured, Outcome
from jobs.model import Blame, Kind, RigState, State
from jobs.payloads import BenchPayload
from jobs.rig_tables import GoldenRow, HealthRunRow, RigHealthRow
from jobs.store import catalog
from jobs.tables import JobRow, ResultRow, RigRow

BENCH = "bench."
LEARNED, LISTED = "learned", "watch list"
GOLDEN_RUNS, GOLDEN_BOOTS = 3, 1
"""A golden is short: one boot with the fewest runs that say something about it."""

LONGEST_WHY = 500


@dataclass(frozen=True)
class Wish:
    """A golden as a watch list names it."""

    rig: str
    stack: str
    revision: str
    low: float | None = None
    high: float | None = None
    text_sha256: str = ""


def rig_of(queue: str) -> str:
    """The rig that a queue belongs to; empty for a queue of no rig."""
    return queue.removeprefix(BENCH) if queue.startswith(BENCH) else ""


def is_quarantined(session: Session, queue: str) -> bool:
    """Whether only health jobs of this queue may be leased."""
    rig = rig_of(queue)
    if not rig:
        return False
    query = select(RigHealthRow.state).where(RigHealthRow.rig == rig)
    return session.exec(query).first() == RigState.QUARANTINED.value


def quarantines(session: Session) -> dict[str, RigHealthRow]:
    """The rigs that run health jobs alone, by name."""
    query = select(RigHealthRow).where(RigHealthRow.state == RigState.QUARANTINED.value)
    return {row.rig: row for row in session.exec(query.order_by(col(RigHealthRow.rig)))}


def health_of(session: Session, rig: str) -> Health:
    """Where a rig stands; unproven where nobody has said anything."""
    row = session.get(RigHealthRow, rig)
    return _value(row) if row else Health()


def _value(row: RigHealthRow) -> Health:
    return Health(
        state=RigState(row.state),
        **{name: getattr(row, name) for name in Health.__dataclass_fields__ if name != "state"},
    )


def keep(session: Session, rig: str, found: Health, now: datetime) -> RigHealthRow:
    """Store where a rig stands; `since` moves with the state alone."""
    row = session.get(RigHealthRow, rig) or RigHealthRow(rig=rig, state="", since=now)
    if row.state != found.state:
        row.since = now
    for name, value in asdict(found).items():
        setattr(row, name, value)
    row.state, row.why = found.state.value, wire.plain(found.why)[:LONGEST_WHY]
    session.add(row)
    session.flush()
    return row


def golden_of(session: Session, rig: str) -> GoldenRow | None:
    """The golden of a rig that counts now."""
    query = select(GoldenRow).where(GoldenRow.rig == rig, col(GoldenRow.retired_at).is_(None))
    return session.exec(query.order_by(col(GoldenRow.id).desc()).limit(1)).first()


def goldens(session: Session) -> Sequence[GoldenRow]:
    """The goldens that count now, by rig."""
    query = select(GoldenRow).where(col(GoldenRow.retired_at).is_(None))
    return session.exec(query.order_by(col(GoldenRow.rig), col(GoldenRow.id))).all()


def known(session: Session, golden: GoldenRow) -> Known:
    """The golden's known result as a value."""
    rig = session.exec(select(RigRow).where(RigRow.name == golden.rig)).first()
    asked = (
        Band(golden.low, golden.high)
        if golden.low is not None and golden.high is not None
        else None
    )
    return Known(
        device=rig.device if rig else "cpu",
        asked=asked,
        speeds=tuple(golden.speeds),
        text_sha256=golden.text_sha256,
    )


def upsert_golden(session: Session, wish: Wish, now: datetime) -> bool:
    """Make this the golden of its rig; whether anything is different now."""
    row = golden_of(session, wish.rig)
    values = asdict(wish)
    if row is not None:
        if row.origin == LISTED and all(getattr(row, k) == v for k, v in values.items()):
            return False
        row.retired_at = now
        session.add(row)
    session.add(GoldenRow(origin=LISTED, created_at=now, **values))
    wanted = replace(health_of(session, wish.rig), run_wanted=health.NEW_GOLDEN)
    keep(session, wish.rig, wanted, now)
    return True


def drop_goldens(session: Session, *, keep: Sequence[str], now: datetime) -> list[str]:
    """Retire what a watch list named and names no more; the rigs of these."""
    gone = [row for row in goldens(session) if row.origin == LISTED and row.rig not in keep]
    for row in gone:
        row.retired_at = now
        session.add(row)
    session.flush()
    return [row.rig for row in gone]


def learn(
    session: Session,
    rig: str,
    wanted: BenchPayload,
    *,
    revision: str,
    speeds: Sequence[float],
    text_sha256: str,
    now: datetime,
) -> GoldenRow | None:
    """The first result that counts is the golden of a rig that has none; None where it has one."""
    if golden_of(session, rig) is not None or not speeds:
        return None
    payload = wanted.model_copy(update={"boots": GOLDEN_BOOTS, "runs": GOLDEN_RUNS})
    row = GoldenRow(
        rig=rig,
        origin=LEARNED,
        stack=wanted.stack,
        revision=revision,
        payload=payload.model_dump(mode="json"),
        text_sha256=text_sha256,
        speeds=list(speeds),
        created_at=now,
    )
    session.add(row)
    session.flush()
    finding = health.Finding(Outcome.BASELINE, "")
    keep(session, rig, health.after_run(health_of(session, rig), finding, now), now)
    return row


def arrive(session: Session, rig: str, environment: Mapping[str, Any], now: datetime) -> str:
    """A machine says what it is now; what changed since it last did, and empties the known speeds.

    What an operator asked for in the watch list stays.
    """
    before = health_of(session, rig)
    change = health.moved(before.environment, environment)
    if change or not before.environment:
        keep(session, rig, health.in_environment(before, environment), now)
    golden = golden_of(session, rig) if change else None
    if golden is not None:
        golden.speeds, golden.text_sha256 = [], _asked_text(golden)
        session.add(golden)
        session.flush()
    return change


def _asked_text(golden: GoldenRow) -> str:
    return golden.text_sha256 if golden.origin == LISTED else ""


def record_run(
    session: Session,
    golden: GoldenRow,
    found: Measured,
    now: datetime,
    *,
    job_id: int | None = None,
    environment: Mapping[str, Any] | None = None,
) -> str:
    """Store what a run of a golden saw and what follows for its rig; one sentence for people.

    Where it puts the rig into quarantine, what was measured and blamed since the last good run is
    marked doubtful.
    """
    if environment:
        arrive(session, golden.rig, environment, now)
    before, result = health_of(session, golden.rig), known(session, golden)
    finding, band = health.judge(result, found), result.band
    after = health.after_run(before, finding, now)
    session.add(
        HealthRunRow(
            golden_id=cast(int, golden.id),
            rig=golden.rig,
            job_id=job_id,
            outcome=finding.outcome.value,
            why=wire.plain(finding.why)[:LONGEST_WHY],
            decode_tps=found.speed,
            low=band.low if band else None,
            high=band.high if band else None,
            text_sha256=found.text_sha256,
            environment=dict(environment or before.environment),
            created_at=now,
        )
    )
    if finding.outcome in health.GOOD and found.speed is not None:
        golden.speeds = [*golden.speeds, found.speed][-health.MOST_SPEEDS :]
        session.add(golden)
    keep(session, golden.rig, after, now)
    words = f"{finding.outcome.value.replace('_', ' ')}: {finding.why}"
    if health.is_shut_by(before, after):
        count = doubt(session, golden.rig, after.why, since=before.last_good_at, now=now)
        return f"{words}; {golden.rig} is quarantined, {count} of its results are doubtful"
    return f"{words}; {golden.rig} is {after.state.value}"


def doubt(session: Session, rig: str, why: str, *, since: datetime | None, now: datetime) -> int:
    """Mark what this rig measured since its last good run, and blame no engine; how many results.

    A verdict that was made stands as it was made; the results feed no further one.
    """
    says = wire.plain(f"measured before {rig} was quarantined at {now:%Y-%m-%d %H:%M} UTC: {why}")
    where = [_is_of(rig), col(ResultRow.doubt) == ""]
    blamed = [
        col(JobRow.queue) == f"{BENCH}{rig}",
        col(JobRow.state) == State.FAILED.value,
        col(JobRow.blame) == Blame.ENGINE.value,
    ]
    if since is not None:
        where.append(col(ResultRow.created_at) > since)
        blamed.append(col(JobRow.finished_at) > since)
    marked = session.execute(
        update(ResultRow)
        .where(*where)
        .values(doubt=says[:LONGEST_WHY])
        .execution_options(synchronize_session=False)
    )
    session.execute(
        update(JobRow)
        .where(*blamed)
        .values(
            blame=Blame.ENVIRONMENT.value,
            advice=f"`forkscout retry JOB` once {rig} is trusted again",
            message=JobRow.message + f"; no engine is blamed: {rig} was quarantined later",
        )
        .execution_options(synchronize_session=False)
    )
    session.expire_all()
    return int(marked.rowcount)  # type: ignore[attr-defined]


def _is_of(rig: str) -> ColumnElement[bool]:
    found = select(RigRow.id).where(RigRow.name == rig).scalar_subquery()
    return col(ResultRow.rig_id) == found


def clear_doubt(session: Session, rig: str) -> int:
    """Believe the results of a rig again; how many."""
    cleared = session.execute(
        update(ResultRow)
        .where(_is_of(rig), col(ResultRow.doubt) != "")
        .values(doubt="")
        .execution_options(synchronize_session=False)
    )
    return int(cleared.rowcount)  # type: ignore[attr-defined]


def quarantine(session: Session, rig: str, why: str, now: datetime) -> str:
    """A person shuts a rig; the reason why it was shut already, which is kept behind the new one.

    Raises `UsageError` for a rig that nobody knows.
    """
    catalog.rig_named(session, rig)
    found = health_of(session, rig)
    before = found.why if found.state is RigState.QUARANTINED else ""
    both = why if before in ("", why) else f"{why}; before: {before}"
    keep(session, rig, health.quarantined(found, both), now)
    return before


def release(session: Session, rig: str, now: datetime) -> bool:
    """A person opens a rig; whether it was shut."""
    catalog.rig_named(session, rig)
    found = health_of(session, rig)
    if found.state is not RigState.QUARANTINED:
        return False
    keep(session, rig, health.released(found), now)
    return True


def want_run(session: Session, rig: str, now: datetime) -> GoldenRow:
    """Ask for a run of the golden now; raises `UsageError` where there is none."""
    catalog.rig_named(session, rig)
    golden = golden_of(session, rig)
    if golden is None:
        raise UsageError(
            f"{rig} has no golden",
            advice="its first result that counts becomes it; or name one as [[golden]]",
        )
    row = keep(session, rig, health_of(session, rig), now)
    row.run_wanted = "asked for by hand"
    session.add(row)
    session.flush()
    return golden


def runs(session: Session, rig: str, *, most: int) -> Sequence[HealthRunRow]:
    """The newest runs of a rig's goldens, newest first."""
    query = select(HealthRunRow).where(HealthRunRow.rig == rig)
    return session.exec(query.order_by(col(HealthRunRow.id).desc()).limit(most)).all()


def count_runs(session: Session, rig: str) -> int:
    """How often goldens of this rig have run."""
    query = select(func.count()).select_from(HealthRunRow).where(HealthRunRow.rig == rig)
    return int(session.exec(query).one())


def lost_job(session: Session, row: RigHealthRow) -> JobRow | None:
    """The health job asked last, where it ended and left no run."""
    job = session.get(JobRow, row.job_id) if row.job_id else None
    ended = (State.DEAD, State.FAILED, State.CANCELLED, State.EXPIRED, State.SUPERSEDED)
    if job is None or job.kind != Kind.SMOKE or State(job.state) not in ended:
        return None
    told = select(HealthRunRow.id).where(HealthRunRow.job_id == job.id)
    return None if session.exec(told).first() else job
