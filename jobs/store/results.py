"""Queries that write builds and results and read what a verdict needs; the caller commits."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from datetime import datetime
from typing import Any, cast

from sqlmodel import Session, col, select

from jobs.build_tables import BuildFlagsRow
from jobs.compare import BootRuns
from jobs.dialect.options import Option, stored
from jobs.model import SILENT, Boot, Validity, Verdict
from jobs.tables import BootRow, BuildRow, ResultRow, RevisionRow, RigRow, SampleRow, VerdictRow


@dataclass(frozen=True)
class Finished:
    """What a bench job found out, ready to be stored; digests name series and cell."""

    build_id: int
    revision_id: int
    engine_id: int
    model_file_id: int
    rig_id: int
    series: str
    cell: str
    stack: str
    scenario: str
    context_tokens: int
    sandbox: str
    validity: Validity
    validity_reason: str
    summary: Mapping[str, Any]
    boots: Sequence[Boot]
    command: Mapping[str, Any] = field(default_factory=dict)
    environment: Mapping[str, Any] = field(default_factory=dict)
    drafter_file_id: int | None = None
    projector_file_id: int | None = None


def build_with_identity(session: Session, identity: str) -> BuildRow | None:
    """The finished build of this identity."""
    return session.exec(select(BuildRow).where(BuildRow.identity == identity)).first()


def may_use(session: Session, build: BuildRow, revision_id: int) -> bool:
    """Whether the engine of this revision may take a build: its own, or one without such a cache.

    What an engine's own compiler cache holds was put there by its code, and may be anything.
    """
    if not build.provenance.get("private"):
        return True
    ours, theirs = (session.get(RevisionRow, n) for n in (revision_id, build.revision_id))
    return ours is not None and theirs is not None and ours.engine_id == theirs.engine_id


def is_made(session: Session, identity: str, revision_id: int) -> bool:
    """Whether there is an artifact of that build which the engine of this revision may take."""
    known = build_with_identity(session, identity)
    return known is not None and not known.lost and may_use(session, known, revision_id)


def is_shared(session: Session, engine_id: int, commit: str) -> bool:
    """Whether another engine has this very commit too: then one build serves both."""
    query = select(RevisionRow.id).where(
        RevisionRow.commit == commit, RevisionRow.engine_id != engine_id
    )
    return session.exec(query.limit(1)).first() is not None


def record_build(
    session: Session, row: BuildRow, options: Sequence[Option] | None = None
) -> BuildRow:
    """Store a finished build once with the options it understands; the first one stands."""
    known = build_with_identity(session, row.identity)
    if known is not None and not known.lost:
        return known
    if known is not None:
        known.artifact, known.job_id, known.lost = row.artifact, row.job_id, False
        known.provenance, known.source_tree = row.provenance, row.source_tree
        known.size_bytes, known.duration_seconds = row.size_bytes, row.duration_seconds
        row = known
    session.add(row)
    session.flush()
    if options is not None:
        session.merge(BuildFlagsRow(build_id=cast(int, row.id), options=stored(options)))
        session.flush()
    return row


def build_of_source(
    session: Session, engine_id: int, source_tree: str, *, proposed: bool = False
) -> BuildRow | None:
    """The oldest build of this engine that was really made of exactly these files.

    What pull requests left behind is kept apart from what its own branches did.
    """
    query = (
        select(BuildRow)
        .join(RevisionRow, col(RevisionRow.id) == BuildRow.revision_id)
        .where(
            RevisionRow.engine_id == engine_id,
            BuildRow.source_tree == source_tree,
            col(BuildRow.lost).is_(False),
            col(RevisionRow.proposed).is_(proposed),
        )
    )
    return session.exec(query.order_by(col(BuildRow.id)).limit(1)).first()


def build_of_artifact(session: Session, revision_id: int, artifact: str) -> BuildRow | None:
    """A build of this revision whose artifact is exactly that."""
    query = select(BuildRow).where(
        BuildRow.revision_id == revision_id, BuildRow.artifact == artifact
    )
    return session.exec(query.order_by(col(BuildRow.id)).limit(1)).first()


def find_again(session: Session, identity: str) -> BuildRow:
    """The build of this identity, whose artifact was seen in the store: it is not lost."""
    row = session.exec(select(BuildRow).where(BuildRow.identity == identity)).one()
    row.lost = False
    session.add(row)
    return row


def lose_build(session: Session, identity: str) -> None:
    """The artifact is gone from the store: the next request for this build makes it again."""
    row = build_with_identity(session, identity)
    if row is not None:
        row.lost = True
        session.add(row)


def record_result(session: Session, job_id: int, found: Finished, now: datetime) -> ResultRow:
    """Store a result with every boot and every sample."""
    values = {k: v for k, v in vars(found).items() if k not in ("summary", "boots")}
    row = ResultRow(
        job_id=job_id,
        created_at=now,
        **{**values, **found.summary, "validity": str(found.validity)},
    )
    session.add(row)
    session.flush()
    for boot in found.boots:
        _record_boot(session, cast(int, row.id), boot, now)
    return row


def _record_boot(session: Session, result_id: int, boot: Boot, now: datetime) -> None:
    row = BootRow(
        result_id=result_id,
        number=boot.number,
        load_seconds=boot.load_seconds,
        listener_is_child=boot.listener_is_child,
        peak_memory_bytes=boot.peak_memory_bytes,
        facts=asdict(boot.facts),
        effective=asdict(boot.effective),
        props=dict(boot.props),
        slots=list(boot.slots),
        environment=dict(boot.environment),
        layout=asdict(boot.layout) if boot.layout else None,
        memory=asdict(boot.memory) if boot.memory and boot.memory != SILENT else None,
        started_at=boot.started_at or now,
    )
    session.add(row)
    session.flush()
    for measurement in boot.measurements:
        values = asdict(measurement)
        del values["scenario"]  # a stored result is about one
        session.add(SampleRow(boot_id=cast(int, row.id), **values))
    session.flush()


def record_verdict(
    session: Session, result_id: int, baseline_id: int | None, verdict: Verdict, now: datetime
) -> VerdictRow:
    """Store a judgement beside the result it is about."""
    row = VerdictRow(
        result_id=result_id, baseline_id=baseline_id, created_at=now, **asdict(verdict)
    )
    session.add(row)
    session.flush()
    return row


def boots_of(session: Session, result_id: int) -> list[BootRuns]:
    """The usable runs of each boot of a result."""
    query = (
        select(BootRow.number, SampleRow.decode_tps)
        .join(SampleRow, col(SampleRow.boot_id) == col(BootRow.id))
        .where(
            BootRow.result_id == result_id,
            col(SampleRow.warmup).is_(False),
            SampleRow.validity == Validity.OK.value,
            col(SampleRow.decode_tps).is_not(None),
        )
        .order_by(col(BootRow.number), col(SampleRow.run))
    )
    runs: dict[int, list[float]] = {}
    for number, speed in session.exec(query).all():
        runs.setdefault(number, []).append(cast(float, speed))
    return [BootRuns(number, tuple(speeds)) for number, speeds in runs.items()]


def revision_label(session: Session, row: ResultRow) -> str:
    """What people call the revision a result is about."""
    revision = session.get(RevisionRow, row.revision_id)
    return revision.label if revision else f"revision {row.revision_id}"


def cell_history(session: Session, cell: str) -> Sequence[ResultRow]:
    """The `ok` results of a cell that nobody doubts, oldest first."""
    query = (
        select(ResultRow)
        .where(ResultRow.cell == cell, ResultRow.validity == Validity.OK.value)
        .where(ResultRow.doubt == "")
        .order_by(col(ResultRow.id))
    )
    return session.exec(query).all()


def ok_on_rig(session: Session, rig: str, *, most: int) -> list[tuple[int, Mapping[str, Any]]]:
    """The newest `ok` results of a rig that nobody doubts, each with its environment."""
    query = (
        select(ResultRow)
        .join(RigRow, col(RigRow.id) == col(ResultRow.rig_id))
        .where(RigRow.name == rig, ResultRow.validity == Validity.OK.value, ResultRow.doubt == "")
        .order_by(col(ResultRow.id).desc())
    )
    return [(cast(int, row.id), row.environment) for row in session.exec(query.limit(most))]


def after_runs(session: Session, result_ids: Collection[int]) -> dict[int, list[Mapping[str, Any]]]:
    """What machine and card said after each `ok` run of these results, by boot."""
    query = (
        select(BootRow.id, SampleRow.after)
        .join(SampleRow, col(SampleRow.boot_id) == col(BootRow.id))
        .where(
            col(BootRow.result_id).in_(result_ids),
            col(SampleRow.warmup).is_(False),
            SampleRow.validity == Validity.OK.value,
        )
    )
    found: dict[int, list[Mapping[str, Any]]] = {}
    for boot_id, after in session.exec(query):
        found.setdefault(cast(int, boot_id), []).append(after)
    return found


NOWHERE = ("", 0)


def baseline_for(
    session: Session, revision: RevisionRow, history: Sequence[ResultRow]
) -> ResultRow | None:
    """The newest `ok` result of the closest older revision; else of the same revision.

    Of two that claim the same moment the one seen first is older.
    """
    orders = {
        row.id: (row.order_key, cast(int, row.id))
        for row in session.exec(
            select(RevisionRow).where(RevisionRow.engine_id == revision.engine_id)
        ).all()
    }
    mine = orders.get(revision.id, NOWHERE)
    older = [row for row in history if orders.get(row.revision_id, NOWHERE) < mine]
    if older:
        return max(older, key=lambda row: (orders[row.revision_id], row.id or 0))
    same = [row for row in history if row.revision_id == revision.id]
    return same[-1] if same else None
