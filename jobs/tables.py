"""Rows as they are stored; storage only, rules live in the core."""

from __future__ import annotations

from datetime import datetime
from typing import Any

from sqlalchemy import Index, UniqueConstraint, text
from sqlmodel import Field, SQLModel

from jobs.columns import json_or_nothing, json_value, large, moment

LIVE = "state in ('queued', 'blocked', 'leased', 'running')"
HELD = "state in ('leased', 'running')"
IN_LINE = "state = 'queued' AND NOT put_off"
PUT_OFF = "state = 'queued' AND put_off"
BLOCKED = "state = 'blocked'"
AGES = "state = 'queued' AND ages_at IS NOT NULL"
BROKEN = "state in ('failed', 'dead')"
ENDED = "finished_at IS NOT NULL"
UNPLANNED = "NOT planned"
EXPIRES = "state in ('queued', 'blocked') AND expires_at IS NOT NULL"


def _index_where(name: str, condition: str, *columns: str, unique: bool = False) -> Index:
    """An index over the rows that a condition names; a query finds it by the same words."""
    where = text(condition)
    return Index(name, *columns, unique=unique, sqlite_where=where, postgresql_where=where)


class EngineRow(SQLModel, table=True):
    """A server code base at one repository or package."""

    __tablename__ = "engine"
    id: int | None = Field(default=None, primary_key=True)
    name: str = Field(unique=True)
    family: str
    repo: str | None = None
    package: str | None = None
    parent: str | None = None
    trust: str
    branches: list[str] = json_value(list)
    newest: int = 3
    targets: list[dict[str, Any]] = json_value(list)
    retired: bool = False
    created_at: datetime = moment()


class RevisionRow(SQLModel, table=True):
    """An engine at one full commit sha, or at one wheel's sha256.

    `replaced`: a newer head took its place before anybody measured it. `proposed`: as far as we
    know it stands in a pull request alone, and may be anybody's.
    """

    __tablename__ = "revision"
    __table_args__ = (UniqueConstraint("engine_id", "commit"),)
    id: int | None = Field(default=None, primary_key=True)
    engine_id: int = Field(foreign_key="engine.id", index=True)
    commit: str
    label: str
    order_key: str = ""
    committed_at: datetime | None = moment(default=None)
    replaced: bool = False
    proposed: bool = False
    first_seen_at: datetime = moment()


class EventRow(SQLModel, table=True):
    """A sighting worth acting on, once."""

    __tablename__ = "event"
    __table_args__ = (_index_where("ix_event_unplanned", UNPLANNED, "id"),)
    id: int | None = Field(default=None, primary_key=True)
    key: str = Field(unique=True)
    kind: str
    engine_id: int | None = Field(default=None, foreign_key="engine.id")
    revision_id: int | None = Field(default=None, foreign_key="revision.id")
    title: str
    payload: dict[str, Any] = json_value()
    planned: bool = False
    happened_at: datetime | None = moment(default=None)
    seen_at: datetime = moment()


class ModelFileRow(SQLModel, table=True):
    """A weight file with its role and sha256; `StoredWeightRow` says which stores hold it.

    `facts` and `shape` are its header's, read once; `header_fault` says why there is no shape.
    """

    __tablename__ = "model_file"
    id: int | None = Field(default=None, primary_key=True)
    name: str = Field(unique=True)
    role: str = "target"
    model_class: str
    quantisation: str = ""
    sha256: str = Field(index=True)
    source: dict[str, Any] = json_value()
    size_bytes: int | None = large(default=None)
    facts: dict[str, Any] | None = json_or_nothing()
    shape: dict[str, Any] | None = json_or_nothing()
    header_fault: str = ""
    created_at: datetime = moment()


class StoredWeightRow(SQLModel, table=True):
    """A model file lies whole in this weights store; machines that share a folder share a store."""

    __tablename__ = "stored_weight"
    model_file_id: int = Field(foreign_key="model_file.id", primary_key=True)
    store: str = Field(primary_key=True)
    since: datetime = moment()


class StackRow(SQLModel, table=True):
    """What a watch list asks to be benched: engine, model files and intents.

    `own_scenarios` are the words of those that the list itself wrote, by name.
    """

    __tablename__ = "stack"
    id: int | None = Field(default=None, primary_key=True)
    name: str = Field(unique=True)
    engine_id: int = Field(foreign_key="engine.id")
    target: str
    drafter: str | None = None
    mmproj: str | None = None
    intent: dict[str, Any] = json_value()
    flags: list[str] = json_value(list)
    env: dict[str, str] = json_value()
    scenarios: list[str] = json_value(list)
    own_scenarios: dict[str, Any] = json_value()
    created_at: datetime = moment()


class RigRow(SQLModel, table=True):
    """A machine and its measuring device; `fingerprint` is empty until a worker has reported.

    `memory_bytes` is what a watch list says of its card.
    """

    __tablename__ = "rig"
    id: int | None = Field(default=None, primary_key=True)
    name: str = Field(unique=True)
    device: str = "cpu"
    fingerprint: str = ""
    memory_bytes: int | None = large(default=None)
    facts: dict[str, Any] = json_value()
    created_at: datetime = moment()


class WorkerRow(SQLModel, table=True):
    """One worker process: when it spoke, when it last heard its doorbell, what holds it back."""

    __tablename__ = "worker"
    name: str = Field(primary_key=True)
    queue: str
    host: str
    pid: int
    draining: bool = False
    sandbox: str = ""
    trouble: str = ""
    advice: str = ""
    started_at: datetime = moment()
    beat_at: datetime = moment()
    heard_at: datetime | None = moment(default=None)


class JobRow(SQLModel, table=True):
    """A job: the truth about what is to be done and who holds it.

    Within a lane the earlier `turn_at` goes first. `source` is who asked, `cause` what made it:
    ids of an event, a rule, a negative or another job. `put_off` rows stand outside the line until
    `due_at`; at `ages_at` a row that still waits moves up a lane. `revision_id` and `event_id` are
    those of payload and cause, so that they can be asked for.
    """

    __tablename__ = "job"
    __table_args__ = (
        _index_where("ux_job_live_identity", LIVE, "identity", unique=True),
        Index("ix_job_identity", "identity"),
        Index("ix_job_revision", "revision_id"),
        Index("ix_job_event", "event_id"),
        _index_where(
            "ix_job_line", IN_LINE, "queue", "lane", "turn_at", "id", "due_at", "estimate_seconds"
        ),
        _index_where("ix_job_source", IN_LINE, "queue", "lane", "source", "turn_at", "id"),
        _index_where("ix_job_put_off", PUT_OFF, "queue", "due_at"),
        _index_where("ix_job_held", HELD, "beat_at"),
        _index_where("ix_job_blocked", BLOCKED, "blocked_by", "queue"),
        _index_where("ix_job_ages", AGES, "ages_at"),
        _index_where("ix_job_expires", EXPIRES, "expires_at"),
        _index_where("ix_job_broken", BROKEN, "finished_at", "id"),
        _index_where("ix_job_ended", ENDED, "finished_at", "id"),
        _index_where("ix_job_past", ENDED, "queue", "finished_at"),
    )
    id: int | None = Field(default=None, primary_key=True)
    kind: str
    queue: str
    state: str
    lane: int
    identity: str
    title: str
    payload: dict[str, Any] = json_value()
    reason: str = ""
    source: str = ""
    cause: dict[str, Any] = json_value()
    revision_id: int | None = None
    event_id: int | None = None
    estimate_seconds: float | None = None
    created_at: datetime = moment()
    due_at: datetime = moment()
    turn_at: datetime = moment()
    put_off: bool = False
    ages_at: datetime | None = moment(default=None)
    expires_at: datetime | None = moment(default=None)
    started_at: datetime | None = moment(default=None)
    finished_at: datetime | None = moment(default=None)
    blocked_by: str | None = None
    fence: int = 0
    attempts: int = 0
    leased_by: str | None = None
    beat_at: datetime | None = moment(default=None)
    cancel_requested: bool = False
    failure_class: str | None = None
    blame: str | None = None
    message: str = ""
    advice: str = ""
    progress: dict[str, Any] = json_value()


class JobNeedRow(SQLModel, table=True):
    """`job_id` may only start when `needs_id` has succeeded; `settled`: ended in whatever way."""

    __tablename__ = "job_need"
    job_id: int = Field(foreign_key="job.id", primary_key=True)
    needs_id: int = Field(foreign_key="job.id", primary_key=True, index=True)
    settled: bool = False


class BuildRow(SQLModel, table=True):
    """A finished artifact with its provenance; `identity` digests everything that went in.

    `source_tree` digests the files of the source that the recipe uses; empty where that is unknown.
    """

    __tablename__ = "build"
    id: int | None = Field(default=None, primary_key=True)
    identity: str = Field(unique=True)
    revision_id: int = Field(foreign_key="revision.id", index=True)
    job_id: int = Field(foreign_key="job.id")
    target: str
    artifact: str = Field(index=True)
    lost: bool = False
    recipe: str
    source_tree: str = Field(default="", index=True)
    size_bytes: int = large()
    duration_seconds: float
    sandbox: str
    provenance: dict[str, Any] = json_value()
    created_at: datetime = moment()


class ResultRow(SQLModel, table=True):
    """All boots of one bench job; `doubt` says why its rig could not be believed at that time."""

    __tablename__ = "result"
    id: int | None = Field(default=None, primary_key=True)
    job_id: int = Field(foreign_key="job.id", unique=True)
    build_id: int = Field(foreign_key="build.id", index=True)
    revision_id: int = Field(foreign_key="revision.id", index=True)
    engine_id: int = Field(foreign_key="engine.id", index=True)
    model_file_id: int = Field(foreign_key="model_file.id", index=True)
    drafter_file_id: int | None = Field(default=None, foreign_key="model_file.id")
    projector_file_id: int | None = Field(default=None, foreign_key="model_file.id")
    rig_id: int = Field(foreign_key="rig.id", index=True)
    series: str = Field(index=True)
    cell: str = Field(index=True)
    stack: str
    scenario: str
    context_tokens: int
    sandbox: str
    validity: str
    validity_reason: str = ""
    doubt: str = ""
    decode_tps: float | None = None
    prefill_tps: float | None = None
    ttft_ms: float | None = None
    load_seconds: float | None = None
    peak_memory_bytes: int | None = large(default=None)
    boots_used: int = 0
    runs_used: int = 0
    command: dict[str, Any] = json_value()
    environment: dict[str, Any] = json_value()
    created_at: datetime = moment()


class BootRow(SQLModel, table=True):
    """One start of a server within a result; `layout` and `memory` are None in old rows."""

    __tablename__ = "boot"
    __table_args__ = (UniqueConstraint("result_id", "number"),)
    id: int | None = Field(default=None, primary_key=True)
    result_id: int = Field(foreign_key="result.id", index=True)
    number: int
    load_seconds: float
    listener_is_child: bool
    peak_memory_bytes: int | None = large(default=None)
    facts: dict[str, Any] = json_value()
    effective: dict[str, Any] = json_value()
    props: dict[str, Any] = json_value()
    slots: list[Any] = json_value(list)
    environment: dict[str, Any] = json_value()
    layout: dict[str, Any] | None = json_or_nothing()
    memory: dict[str, Any] | None = json_or_nothing()
    started_at: datetime = moment()


class SampleRow(SQLModel, table=True):
    """One measured request, kept whatever it says; fields as in `model.Measurement`."""

    __tablename__ = "sample"
    __table_args__ = (UniqueConstraint("boot_id", "run", "warmup"),)
    id: int | None = Field(default=None, primary_key=True)
    boot_id: int = Field(foreign_key="boot.id", index=True)
    run: int
    warmup: bool
    validity: str
    reason: str = ""
    predicted_n: int | None = None
    predicted_ms: float | None = None
    prompt_n: int | None = None
    prompt_ms: float | None = None
    cache_n: int | None = None
    decode_tps: float | None = None
    prefill_tps: float | None = None
    wall_tps: float | None = None
    arrival_tps: float | None = None
    ttft_ms: float | None = None
    ttft_content_ms: float | None = None
    inter_token_p50_ms: float | None = None
    inter_token_p99_ms: float | None = None
    draft_n: int | None = None
    draft_accepted_n: int | None = None
    finish_reason: str | None = None
    model_echo: str | None = None
    text_sha256: str | None = None
    text_head: str = ""
    sanity: float | None = None
    source: str = "timings"
    timings: dict[str, Any] = json_value()
    after: dict[str, Any] = json_value()


class VerdictRow(SQLModel, table=True):
    """What a result meant when it arrived; never rewritten, fractions as in `model.Verdict`."""

    __tablename__ = "verdict"
    id: int | None = Field(default=None, primary_key=True)
    result_id: int = Field(foreign_key="result.id", index=True)
    baseline_id: int | None = Field(default=None, foreign_key="result.id")
    kind: str
    sentence: str
    effect: float | None = None
    low: float | None = None
    high: float | None = None
    resolution: float | None = None
    boots: int = 0
    runs: int = 0
    created_at: datetime = moment()


class SlotRow(SQLModel, table=True):
    """One slot of a schedule; the key makes two schedulers ring once."""

    __tablename__ = "slot"
    schedule: str = Field(primary_key=True)
    slot: datetime = moment(primary_key=True)
    taken_at: datetime = moment()
    outcome: dict[str, Any] = json_value()
