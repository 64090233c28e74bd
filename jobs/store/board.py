"""Read queries for the leaderboard and one result; returns frozen values and never commits."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping

from sqlalchemy import ColumnElement, func
from sqlmodel import Session, col, select

from jobs.model import Measurement, State, Validity, Verdict, VerdictKind
from jobs.store import arms
from jobs.store.shown import (
    Entry,
    Group,
    ResultDetail,
    ShownBoot,
    ShownBuild,
    ShownVerdict,
)
from jobs.tables import (
    BootRow,
    BuildRow,
    EngineRow,
    JobRow,
    ModelFileRow,
    ResultRow,
    RevisionRow,
    RigRow,
    SampleRow,
    VerdictRow,
)

LOST = (State.FAILED, State.CANCELLED, State.EXPIRED, State.SUPERSEDED, State.DEAD)
COUNTED = (col(SampleRow.warmup).is_(False), col(SampleRow.validity) == Validity.OK)


def leaderboard(session: Session) -> tuple[Entry, ...]:
    """The newest result of each series and revision whose job did not fail, newest first."""
    ranked = (
        select(
            col(ResultRow.id),
            func.row_number()
            .over(
                partition_by=(col(ResultRow.series), col(ResultRow.revision_id)),
                order_by=(col(ResultRow.created_at).desc(), col(ResultRow.id).desc()),
            )
            .label("age"),
        )
        .join(JobRow, col(JobRow.id) == ResultRow.job_id)
        .where(col(JobRow.state).not_in(LOST))
        .subquery()
    )
    return _entries(session, col(ResultRow.id).in_(select(ranked.c.id).where(ranked.c.age == 1)))


def newest_entries(session: Session, *, limit: int) -> tuple[Entry, ...]:
    """The results measured last, whatever became of them."""
    newest = select(ResultRow.id).order_by(
        col(ResultRow.created_at).desc(), col(ResultRow.id).desc()
    )
    return _entries(session, col(ResultRow.id).in_(newest.limit(limit)))


def result_ids(session: Session) -> tuple[int, ...]:
    """Every result there is, oldest first."""
    return tuple(i for i in session.exec(select(ResultRow.id).order_by(col(ResultRow.id))) if i)


def result(session: Session, result_id: int) -> ResultDetail | None:
    """One result with all boots and samples, or None."""
    entries = _entries(session, col(ResultRow.id) == result_id)
    if not entries:
        return None
    row = session.get_one(ResultRow, result_id)
    build = session.get_one(BuildRow, row.build_id)
    model_file = session.get_one(ModelFileRow, row.model_file_id)
    rig = session.get_one(RigRow, row.rig_id)
    job = session.get_one(JobRow, row.job_id)
    arm, beside_id = arms.of_result(session, result_id) or ("", None)
    return ResultDetail(
        entry=entries[0],
        boots=_boots(session, result_id),
        verdicts=_verdicts(session, result_id),
        build=ShownBuild(
            id=build.id,
            job_id=build.job_id,
            artifact=build.artifact,
            identity=build.identity,
            recipe=build.recipe,
            target=build.target,
            sandbox=build.sandbox,
            size_bytes=build.size_bytes,
            duration_seconds=build.duration_seconds,
            provenance=build.provenance,
        ),
        model_sha256=model_file.sha256,
        model_source=model_file.source,
        model_size_bytes=model_file.size_bytes,
        rig_device=rig.device,
        rig_fingerprint=rig.fingerprint,
        rig_facts=rig.facts,
        asked=job.payload,
        command=row.command,
        environment=row.environment,
        arm=arm,
        beside_id=beside_id,
    )


def _entries(session: Session, chosen: ColumnElement[bool]) -> tuple[Entry, ...]:
    found = session.exec(
        select(ResultRow, RevisionRow, ModelFileRow, RigRow)
        .join(RevisionRow, col(RevisionRow.id) == ResultRow.revision_id)
        .join(ModelFileRow, col(ModelFileRow.id) == ResultRow.model_file_id)
        .join(RigRow, col(RigRow.id) == ResultRow.rig_id)
        .where(chosen)
        .order_by(col(ResultRow.created_at).desc(), col(ResultRow.id).desc())
    ).all()
    if not found:
        return ()
    engines = {row.id: row for row in session.exec(select(EngineRow))}
    runs = _runs(session, chosen)
    drafts = _drafts(session, chosen)
    verdicts = _newest_verdicts(session, chosen)
    return tuple(
        Entry(
            result_id=row.id or 0,
            job_id=row.job_id,
            group=Group(
                model_class=model_file.model_class,
                rig=rig.name,
                context_tokens=row.context_tokens,
                scenario=row.scenario,
            ),
            series=row.series,
            stack=row.stack,
            engine=engines[row.engine_id].name,
            family=engines[row.engine_id].family,
            label=revision.label,
            commit=revision.commit,
            model_file=model_file.name,
            quantisation=model_file.quantisation,
            decode_tps=row.decode_tps,
            prefill_tps=row.prefill_tps,
            ttft_ms=row.ttft_ms,
            load_seconds=row.load_seconds,
            peak_memory_bytes=row.peak_memory_bytes,
            boots_used=row.boots_used,
            runs_used=row.runs_used,
            validity=_shown_validity(row),
            validity_reason=row.doubt or row.validity_reason,
            sandbox=row.sandbox,
            measured_at=row.created_at,
            verdict=verdicts.get(row.id or 0),
            runs=runs.get(row.id or 0, ()),
            draft_n=drafts.get(row.id or 0, (None, None))[0],
            draft_accepted_n=drafts.get(row.id or 0, (None, None))[1],
        )
        for row, revision, model_file, rig in found
    )


def _shown_validity(row: ResultRow) -> Validity:
    """What is stored stays; a number that was `ok` on a rig in doubt is shown as doubtful."""
    found = Validity(row.validity)
    return Validity.DOUBTFUL if row.doubt and found is Validity.OK else found


def _runs(
    session: Session, chosen: ColumnElement[bool]
) -> Mapping[int, tuple[tuple[float, ...], ...]]:
    """The t/s of the runs that count: by result, then boot by boot."""
    boots: dict[int, dict[int, list[float]]] = defaultdict(lambda: defaultdict(list))
    for result_id, number, decode_tps in session.exec(
        select(BootRow.result_id, BootRow.number, SampleRow.decode_tps)
        .join(SampleRow, col(SampleRow.boot_id) == BootRow.id)
        .join(ResultRow, col(ResultRow.id) == BootRow.result_id)
        .where(chosen, *COUNTED, col(SampleRow.decode_tps).is_not(None))
        .order_by(col(BootRow.number), col(SampleRow.run))
    ):
        if decode_tps is not None:
            boots[result_id][number].append(decode_tps)
    return {
        result_id: tuple(tuple(boot) for boot in by_number.values())
        for result_id, by_number in boots.items()
    }


def _drafts(session: Session, chosen: ColumnElement[bool]) -> Mapping[int, tuple[int, int]]:
    """Tokens drafted and accepted, only for results that say so."""
    rows = session.exec(
        select(
            BootRow.result_id,
            func.sum(SampleRow.draft_n),
            func.sum(SampleRow.draft_accepted_n),
        )
        .join(SampleRow, col(SampleRow.boot_id) == BootRow.id)
        .join(ResultRow, col(ResultRow.id) == BootRow.result_id)
        .where(
            chosen,
            *COUNTED,
            col(SampleRow.draft_n).is_not(None),
            col(SampleRow.draft_accepted_n).is_not(None),
        )
        .group_by(col(BootRow.result_id))
    )
    return {result_id: (drafted or 0, accepted or 0) for result_id, drafted, accepted in rows}


def _newest_verdicts(session: Session, chosen: ColumnElement[bool]) -> Mapping[int, Verdict]:
    rows = session.exec(
        select(VerdictRow)
        .join(ResultRow, col(ResultRow.id) == VerdictRow.result_id)
        .where(chosen)
        .order_by(col(VerdictRow.created_at), col(VerdictRow.id))
    )
    return {row.result_id: _verdict(row) for row in rows}


def _verdicts(session: Session, result_id: int) -> tuple[ShownVerdict, ...]:
    rows = session.exec(
        select(VerdictRow)
        .where(VerdictRow.result_id == result_id)
        .order_by(col(VerdictRow.created_at).desc(), col(VerdictRow.id).desc())
    )
    return tuple(
        ShownVerdict(_verdict(row), baseline_id=row.baseline_id, judged_at=row.created_at)
        for row in rows
    )


def _verdict(row: VerdictRow) -> Verdict:
    return Verdict(
        kind=VerdictKind(row.kind),
        sentence=row.sentence,
        effect=row.effect,
        low=row.low,
        high=row.high,
        resolution=row.resolution,
        boots=row.boots,
        runs=row.runs,
    )


def _boots(session: Session, result_id: int) -> tuple[ShownBoot, ...]:
    samples: dict[int, list[Measurement]] = defaultdict(list)
    for sample in session.exec(
        select(SampleRow)
        .join(BootRow, col(BootRow.id) == SampleRow.boot_id)
        .where(BootRow.result_id == result_id)
        .order_by(col(SampleRow.warmup).desc(), col(SampleRow.run))
    ):
        fields = sample.model_dump(exclude={"id", "boot_id", "validity"})
        samples[sample.boot_id].append(Measurement(validity=Validity(sample.validity), **fields))
    rows = session.exec(
        select(BootRow).where(BootRow.result_id == result_id).order_by(col(BootRow.number))
    )
    return tuple(
        ShownBoot(
            number=row.number,
            started_at=row.started_at,
            load_seconds=row.load_seconds,
            listener_is_child=row.listener_is_child,
            peak_memory_bytes=row.peak_memory_bytes,
            facts=row.facts,
            effective=row.effective,
            props=row.props,
            slots=row.slots,
            environment=row.environment,
            samples=tuple(samples[row.id or 0]),
        )
        for row in rows
    )
