"""What a job asked and what its answer depended on, then and now; reads rows, decides nothing."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, cast

from pydantic import TypeAdapter
from sqlmodel import Session, col, select

from jobs.line_tables import AttemptRow
from jobs.model import Kind
from jobs.negative_tables import NegativeRow
from jobs.negatives import Grounds, Question, bench_question
from jobs.sightings import RepositoryRow
from jobs.store import fleet, forks, rigs
from jobs.tables import (
    EngineRow,
    JobRow,
    ModelFileRow,
    RevisionRow,
    RigRow,
    StackRow,
    WorkerRow,
)

ROLES = ("target", "drafter", "projector")

_GROUNDS = TypeAdapter(Grounds)


@dataclass(frozen=True)
class Asked:
    """A question with all that its answer depended on; `wish` is what a retest asks again."""

    question: Question
    grounds: Grounds
    engine: EngineRow
    revision: RevisionRow | None
    stack: str = ""
    files: Mapping[str, ModelFileRow] = field(default_factory=dict)
    wish: Mapping[str, Any] = field(default_factory=dict)

    @property
    def label(self) -> str:
        """How people call what was asked."""
        asked = self.question
        return label(asked.kind, self.engine.name, self.stack, asked.rig, asked.context_tokens)


def label(kind: str, engine: str, stack: str, rig: str, context_tokens: int) -> str:
    """How people call what was asked: the stack, else the engine, where and at which context."""
    if kind == Kind.BUILD:
        return f"the build of {engine} for {rig}"
    return f"{stack} on {rig}" + (f" at {context_tokens:,} tokens" if context_tokens else "")


def stored(grounds: Grounds) -> dict[str, Any]:
    """Grounds as JSON."""
    found: dict[str, Any] = _GROUNDS.dump_python(grounds, mode="json")
    return found


def read(row: NegativeRow) -> Grounds:
    """The grounds of a negative."""
    return _GROUNDS.validate_python(row.grounds)


def of_job(session: Session, job: JobRow) -> Asked | None:
    """What a build or a bench asked; None for other jobs, and where a row it names is gone."""
    payload = job.payload
    revision = session.get(RevisionRow, payload.get("revision_id") or 0)
    engine = session.get(EngineRow, revision.engine_id) if revision else None
    if engine is None or revision is None or job.kind not in (Kind.BUILD, Kind.BENCH):
        return None
    if job.kind == Kind.BUILD:
        return of_build(session, engine, revision, payload, sandbox=_sandbox(session, job))
    files = _files(session, payload)
    if "target" not in files:
        return None
    return of_bench(
        session,
        engine,
        revision,
        files,
        scenario=str(payload.get("scenario", "")),
        wish=payload,
        sandbox=_sandbox(session, job),
    )


def of_build(
    session: Session,
    engine: EngineRow,
    revision: RevisionRow | None,
    payload: Mapping[str, Any],
    *,
    sandbox: str = "",
) -> Asked:
    """The question of a build: an engine for a rig."""
    rig = str(payload.get("target", ""))
    wish = {name: payload.get(name) for name in ("target", "via", "cuda_arch", "options")}
    flags = build_flags(wish)
    grounds = _grounds(session, engine, revision, {}, rig, flags=flags, sandbox=sandbox)
    return Asked(Question(Kind.BUILD, engine.name, rig), grounds, engine, revision, wish=wish)


def build_flags(target: Mapping[str, Any]) -> tuple[str, ...]:
    """What a recipe is told of a build target."""
    words = (target.get("via"), target.get("cuda_arch"), *(target.get("options") or ()))
    return tuple(str(word) for word in words if word)


def of_bench(
    session: Session,
    engine: EngineRow,
    revision: RevisionRow | None,
    files: Mapping[str, ModelFileRow],
    *,
    scenario: str,
    wish: Mapping[str, Any],
    sandbox: str = "",
) -> Asked:
    """The question of a bench; `wish` has rig, stack, context_tokens, intent, flags and env."""
    rig = str(wish.get("rig", ""))
    beside = {f"{role}_sha256": row.sha256 for role, row in files.items() if role != "target"}
    question = bench_question(
        {**wish, **beside, "scenario": scenario},
        engine=engine.name,
        target_sha256=files["target"].sha256,
    )
    kept = ("rig", "context_tokens", "runs", "boots", "intent", "flags", "env", "build_identity")
    grounds = _grounds(
        session,
        engine,
        revision,
        files,
        rig,
        flags=tuple(wish.get("flags") or ()),
        env=dict(wish.get("env") or {}),
        sandbox=sandbox,
    )
    return Asked(
        question,
        grounds,
        engine,
        revision,
        stack=str(wish.get("stack", "")),
        files=files,
        wish={name: wish[name] for name in kept if name in wish},
    )


def _files(session: Session, payload: Mapping[str, Any]) -> dict[str, ModelFileRow]:
    numbers = {
        "target": payload.get("model_file_id"),
        "drafter": payload.get("drafter_file_id"),
        "projector": payload.get("projector_file_id"),
    }
    found = {role: session.get(ModelFileRow, number) for role, number in numbers.items() if number}
    return {role: row for role, row in found.items() if row is not None}


def files_of(session: Session, row: NegativeRow) -> dict[str, ModelFileRow]:
    """The model files of a negative by role."""
    numbers = zip(
        ROLES, (row.target_file_id, row.drafter_file_id, row.projector_file_id), strict=True
    )
    return {
        role: session.get_one(ModelFileRow, number)
        for role, number in numbers
        if number is not None
    }


def _grounds(
    session: Session,
    engine: EngineRow,
    revision: RevisionRow | None,
    files: Mapping[str, ModelFileRow],
    rig: str,
    *,
    flags: tuple[str, ...] = (),
    env: Mapping[str, str] | None = None,
    sandbox: str = "",
) -> Grounds:
    machine = session.exec(select(RigRow).where(RigRow.name == rig)).first()
    names: dict[str, Any] = {role: row.name for role, row in files.items()}
    digests: dict[str, Any] = {f"{role}_sha256": row.sha256 for role, row in files.items()}
    return Grounds(
        **(at(revision) if revision else {}),
        **names,
        **digests,
        **(of_rig(session, machine) if machine else {}),
        flags=flags,
        env=dict(env or {}),
        sandbox=sandbox,
        issues=_issues(session, cast(int, engine.id)),
    )


def at(revision: RevisionRow) -> dict[str, Any]:
    """What grounds say of a revision."""
    return {
        "commit": revision.commit,
        "label": revision.label,
        "order": revision.order_key,
        "revision_id": revision.id or 0,
    }


def of_rig(session: Session, rig: RigRow) -> dict[str, Any]:
    """What grounds say of a rig: its worker's word at the last start, else that of a bench."""
    said = {**rig.facts, **rigs.health_of(session, rig.name).environment}
    return {
        "driver": str(said.get("driver") or ""),
        "vram_bytes": memory_of(rig),
        "fingerprint": str(said.get("hardware") or rig.fingerprint),
    }


def memory_of(rig: RigRow) -> int | None:
    """Bytes of the rig's card, or of a CPU rig's memory, as far as they are known."""
    reported = rig.memory_bytes or rig.facts.get("vram_bytes")
    if isinstance(reported, int) and reported > 0:
        return reported
    gib = rig.facts.get("memory_gib")
    return int(gib * 2**30) if rig.device == "cpu" and isinstance(gib, int | float) else None


def _sandbox(session: Session, job: JobRow) -> str:
    """The cage of the worker that held the job last; empty where that is not known."""
    attempts = select(AttemptRow.worker).where(AttemptRow.job_id == job.id)
    name = session.exec(attempts.order_by(col(AttemptRow.fence).desc()).limit(1)).first()
    worker = session.get(WorkerRow, name) if name else None
    return worker.sandbox if worker else ""


def _issues(session: Session, engine_id: int) -> tuple[str, ...]:
    """Linked issues of the engine's repository that are not closed."""
    query = select(RepositoryRow).where(RepositoryRow.engine_id == engine_id)
    return tuple(
        f"{row.full_name}#{row.number}"
        for place in session.exec(query)
        for row in forks.issues_linked_to(session, place.github_id, place.full_name)
        if row.state != "closed"
    )


@dataclass(frozen=True)
class Scenery:
    """Rigs, stacks, cages and newest revisions, read once for many negatives."""

    rigs: Mapping[str, Mapping[str, Any]]
    stacks: Mapping[str, StackRow]
    cages: Mapping[str, Sequence[str]]
    newest: Mapping[int, RevisionRow]
    engines: Mapping[int, EngineRow]

    def now(self, row: NegativeRow, then: Grounds) -> Grounds:
        """What the answer to that question would depend on today."""
        engine, rig = self.engines[row.engine_id], self.rigs.get(row.rig)
        revision = self.newest.get(row.engine_id)
        flags, env = self._flags(row, then, engine)
        cages = self.cages.get("build" if row.kind == Kind.BUILD else f"bench.{row.rig}", ())
        sandbox = then.sandbox if then.sandbox in cages else next(iter(cages), "")
        today = {
            **stored(then),
            **(rig or {}),
            **(at(revision) if revision else {}),
        }
        return Grounds(**{**today, "flags": flags, "env": env, "sandbox": sandbox})

    def _flags(
        self, row: NegativeRow, then: Grounds, engine: EngineRow
    ) -> tuple[tuple[str, ...], Mapping[str, str]]:
        if row.kind == Kind.BUILD:
            target = next((t for t in engine.targets if t.get("rig") == row.rig), None)
            return (build_flags({**target}) if target else then.flags), {}
        stack = self.stacks.get(row.stack)
        return (tuple(stack.flags), dict(stack.env)) if stack else (then.flags, then.env)


def scenery(session: Session, rows: list[NegativeRow], now: datetime) -> Scenery:
    """All that is needed to say what these negatives would depend on now."""
    numbers = sorted({row.engine_id for row in rows})
    engines = session.exec(select(EngineRow).where(col(EngineRow.id).in_(numbers))).all()
    return Scenery(
        rigs={row.name: of_rig(session, row) for row in session.exec(select(RigRow))},
        stacks={row.name: row for row in session.exec(select(StackRow))},
        cages=fleet.cages(session, now),
        newest={each: row for each in numbers if (row := newest_revision(session, each))},
        engines={row.id or 0: row for row in engines},
    )


def newest_revision(session: Session, engine_id: int) -> RevisionRow | None:
    """The revision of an engine that comes last."""
    query = select(RevisionRow).where(RevisionRow.engine_id == engine_id)
    last = (col(RevisionRow.order_key).desc(), col(RevisionRow.id).desc())
    return session.exec(query.order_by(*last).limit(1)).first()
