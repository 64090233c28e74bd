"""Stores the results of a file as rows, each once; what contradicts the rows is refused."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from datetime import datetime
from pathlib import Path
from typing import Any, cast

from sqlmodel import Session, col, select

from jobs import compare, import_rows, negatives, planner
from jobs.errors import UsageError
from jobs.imported import MOST_BYTES, Document, Series, read, series
from jobs.model import Kind, Lane, State, Validity
from jobs.payloads import BenchPayload
from jobs.store import arms, births, results, work
from jobs.store.judging import judged, judged_again
from jobs.summing import gravest, summary, usable_runs
from jobs.tables import BuildRow, EngineRow, JobRow, ModelFileRow, ResultRow, RevisionRow, RigRow

QUEUE = "import"
RECIPE = "built elsewhere"


@dataclass(frozen=True)
class Stored:
    """What became of one scenario of the file."""

    result_id: int
    scenario: str
    context_tokens: int
    sentence: str
    is_new: bool


@dataclass(frozen=True)
class _Rows:
    engine: EngineRow
    revision: RevisionRow
    models: Mapping[str, ModelFileRow]
    rig: RigRow

    @property
    def model(self) -> ModelFileRow:
        """What was measured; a drafter and a projector stand beside it."""
        return self.models["target"]

    @property
    def beside(self) -> dict[str, Any]:
        """What a payload says of them."""
        found: dict[str, Any] = {}
        for role, word in (("drafter", "drafter"), ("mmproj", "projector")):
            if (row := self.models.get(role)) is not None:
                found |= {f"{word}_file_id": row.id, f"{word}_sha256": row.sha256}
        return found


def load(path: Path) -> tuple[Document, str]:
    """The file's values and its sha256. Raises UsageError where it is none or cannot be read."""
    try:
        with path.open("rb") as file:
            content = file.read(MOST_BYTES + 1)
    except OSError as fault:
        raise UsageError(
            f"{path} cannot be read: {fault.strerror}", advice="Name a result file."
        ) from fault
    return read(content), hashlib.sha256(content).hexdigest()


def store(
    session: Session,
    document: Document,
    *,
    file_sha256: str,
    rig: str,
    now: datetime,
    days: float = negatives.DEFAULT_DAYS,
) -> list[Stored]:
    """Every series of the file as a result; what was stored before stays as it is.

    What does not work, or works again, is known as after a job of our own; `days` is how long a
    first negative stands.

    Raises UsageError where the file contradicts itself or what we know of engine, model or rig;
    then nothing of it may be committed.
    """
    found = list(series(document))
    if not found:
        raise UsageError("the file holds no measured boot", advice="Look at its failures.")
    work.take_turn(session)
    rows = _Rows(
        *import_rows.engine(session, document, now),
        {role: import_rows.model(session, told, now) for role, told in document.models.items()},
        import_rows.rig(session, document, rig, now),
    )
    stored = [_one(session, document, rows, each, file_sha256, now, days) for each in found]
    if any(each.is_new for each in stored):
        request = planner.publish_request(lane=Lane.FRESH, reason=f"import {file_sha256[:12]}")
        work.enqueue(session, [request], now)
    return stored


def _one(
    session: Session,
    told: Document,
    rows: _Rows,
    one: Series,
    file_sha256: str,
    now: datetime,
    days: float,
) -> Stored:
    identity = _identity(told, rows, one)
    before = _imported_before(session, identity)
    if before is not None:
        return Stored(cast(int, before.id), one.scenario.key, before.context_tokens, "", False)
    payload = BenchPayload(
        revision_id=cast(int, rows.revision.id),
        build_identity=planner.digest("import", rows.engine.name, told.build.artifact),
        model_file_id=cast(int, rows.model.id),
        scenario=one.scenario.word,
        rig=rows.rig.name,
        stack=f"{rows.engine.name} on {rows.rig.name}",
        context_tokens=one.asked.context_tokens,
        runs=one.asked.runs,
        boots=one.asked.boots,
        intent=one.asked.intent,
        flags=tuple(one.asked.flags),
        env=one.asked.env,
        **rows.beside,
    )
    job = _job(session, identity, payload, one, now)
    build = _build(session, told, rows, payload, job, now)
    worth = Validity.TWIN if told.is_twin else Validity.OK
    runs = usable_runs(one.boots)
    stands = compare.standing(
        runs, runs_asked=payload.runs, boots_asked=payload.boots, **gravest(one.boots)
    )
    origin = {
        "file_sha256": file_sha256,
        "made_at": told.made_at,
        **({"pairing": told.pairing.model_dump()} if told.pairing else {}),
        "caged": told.caged,
        "twin_of": told.models["target"].twin_of,
        "models": {role: model.sha256 for role, model in told.models.items()},
    }
    line = planner.series_key(
        engine=rows.engine.name,
        weights_sha256=rows.model.sha256,
        scenario=one.scenario,
        payload=payload,
        target=build.target,
    )
    found = results.Finished(
        build_id=cast(int, build.id),
        revision_id=payload.revision_id,
        engine_id=cast(int, rows.engine.id),
        model_file_id=payload.model_file_id,
        rig_id=cast(int, rows.rig.id),
        series=line,
        cell=_cell(line, rows.rig, told),
        stack=payload.stack,
        scenario=one.scenario.key,
        context_tokens=payload.context_tokens,
        sandbox=told.sandbox,
        validity=stands.validity,
        validity_reason=stands.reason,
        summary=summary(one.boots, usable_runs(one.boots, worth=worth), worth=worth),
        boots=one.boots,
        command=_command(told, one),
        environment={**told.machine, "card": told.card, "imported": origin},
    )
    history = results.cell_history(session, found.cell)
    row = results.record_result(session, cast(int, job.id), found, now)
    beside = _in_turns(session, told, payload, row, now)
    verdict = judged(
        session,
        row,
        rows.revision,
        runs,
        standing=stands,
        history=history,
        now=now,
        beside=beside,
    )
    job.message = verdict.sentence
    session.add(job)
    session.flush()
    births.job_ended(session, cast(int, job.id), now, days=days)
    return Stored(
        cast(int, row.id), one.scenario.key, payload.context_tokens, verdict.sentence, True
    )


def _in_turns(
    session: Session, told: Document, payload: BenchPayload, row: ResultRow, now: datetime
) -> ResultRow | None:
    """The baseline that a candidate was booted in turns with, where its file came before.

    Where this is the baseline and the candidate is there already, that one is judged again.
    """
    if told.pairing is None:
        return None
    arm = arms.arm_of(told.pairing.id, told.pairing.arm, payload)
    other = arms.beside(session, arm)
    arms.add(session, cast(int, row.id), arm)
    if other is not None and arm.arm == arms.BASELINE:
        judged_again(session, other, row, now)
    return other if arm.arm == arms.CANDIDATE else None


def _identity(told: Document, rows: _Rows, one: Series) -> str:
    """What was measured, whichever file it came in."""
    return planner.digest(
        "import",
        told.build.artifact,
        rows.model.sha256,
        asdict(one.scenario),
        one.asked.model_dump(mode="json"),
        [asdict(boot) for boot in one.boots],
        *([rows.beside] if rows.beside else []),
    )


def _imported_before(session: Session, identity: str) -> ResultRow | None:
    query = select(ResultRow).join(JobRow, col(JobRow.id) == col(ResultRow.job_id))
    return session.exec(query.where(JobRow.identity == identity)).first()


def _cell(line: str, rig: RigRow, told: Document) -> str:
    card = told.card or {}
    parts = (card.get("uuid"), card.get("driver"), card.get("power_limit_mw"))
    return planner.digest(line, rig.fingerprint, told.sandbox, told.machine.get("kernel"), parts)


def _job(
    session: Session, identity: str, payload: BenchPayload, one: Series, now: datetime
) -> JobRow:
    """The job that this would have been; it is over before anybody can lease it."""
    row = JobRow(
        kind=Kind.BENCH,
        queue=QUEUE,
        state=State.SUCCEEDED,
        lane=Lane.ON_DEMAND,
        identity=identity,
        title=f"import {payload.stack} ({one.scenario.key})",
        payload=payload.model_dump(mode="json"),
        revision_id=payload.revision_id,
        reason="measured on another machine and imported",
        source="import",
        created_at=now,
        due_at=now,
        turn_at=now,
        started_at=now,
        finished_at=now,
    )
    session.add(row)
    session.flush()
    return row


def _build(
    session: Session,
    told: Document,
    rows: _Rows,
    payload: BenchPayload,
    job: JobRow,
    now: datetime,
) -> BuildRow:
    known = results.build_of_artifact(session, payload.revision_id, told.build.artifact)
    if known is not None:
        return known
    arch = told.build.cuda_arch
    row = BuildRow(
        identity=payload.build_identity,
        revision_id=payload.revision_id,
        job_id=cast(int, job.id),
        target=f"sm_{arch}" if arch else rows.rig.device,
        artifact=told.build.artifact,
        lost=True,
        recipe=RECIPE,
        size_bytes=told.build.size_bytes,
        duration_seconds=0.0,
        sandbox=told.sandbox,
        provenance={"imported": True, "facts": told.build.facts},
        created_at=now,
    )
    return results.record_build(session, row)


def _command(told: Document, one: Series) -> Mapping[str, Any]:
    boot = one.boots[0]
    words: Sequence[str] = boot.command
    alias = boot.effective.alias or "<alias>"
    return {
        "server": [word.replace(alias, "<alias>") for word in words],
        "env": dict(one.asked.env),
        "artifact_sha256": told.build.artifact,
        "weights_sha256": told.models["target"].sha256,
    }
