"""What an imported result is about: engine, model and rig as rows; contradictions are refused."""

from __future__ import annotations

from datetime import datetime
from typing import cast

from pydantic import TypeAdapter, ValidationError
from sqlmodel import Session, select

from jobs import planner
from jobs.errors import UsageError
from jobs.fit.stored import facts_stored, shape_in, shape_stored
from jobs.gguf.facts import ModelFacts
from jobs.imported import Document, ModelTold
from jobs.model import RIG_NAME
from jobs.store import catalog, fleet
from jobs.tables import EngineRow, ModelFileRow, RevisionRow, RigRow

HARDWARE = ("architecture", "cpu_model", "physical_cores", "logical_cores")
CARD = ("name", "memory_bytes")

_FACTS = TypeAdapter(ModelFacts)


def engine(session: Session, told: Document, now: datetime) -> tuple[EngineRow, RevisionRow]:
    """Engine and revision of the build; an engine that no watch list names is never built."""
    build = told.build
    known = session.exec(select(EngineRow).where(EngineRow.name == build.engine)).first()
    if known is not None and known.family != told.family:
        raise UsageError(
            f"engine {build.engine!r} is of family {known.family}, the file says {told.family}",
            advice="Bench again with --engine and the right name.",
        )
    if known is None:
        values = {"family": told.family, "trust": "never", "retired": True}
        known, _ = catalog.upsert_engine(session, build.engine, now=now, values=values)
    revision = catalog.add_revision(
        session,
        engine_id=cast(int, known.id),
        commit=build.commit,
        label=build.commit[:12],
        now=now,
    )
    return known, revision


def model(session: Session, told: ModelTold, now: datetime) -> ModelFileRow:
    """The weight file of that digest; a twin has a class of models of its own."""
    known = catalog.model_with(session, told.sha256)
    if known is not None:
        return known
    try:
        facts = facts_stored(_FACTS.validate_python(told.facts))
        shape = shape_stored(shape_in(told.shape)) if told.shape else None
    except ValidationError as fault:
        raise UsageError(
            f"the header of {told.name!r} in the file is damaged", advice="Bench again."
        ) from fault
    name = f"{told.name} (twin)" if told.twin_of is not None else told.name
    taken = session.exec(select(ModelFileRow.id).where(ModelFileRow.name == name)).first()
    if taken is not None:
        name = f"{name}@{told.sha256[:12]}"
    label = facts.get("basename") or facts.get("name") or told.name
    values = {
        "model_class": f"twin of {told.twin_of}" if told.twin_of is not None else label,
        "quantisation": facts.get("name_label") or facts.get("file_type_name") or "",
        "sha256": told.sha256,
        "source": {"kind": "imported", "twin_of": told.twin_of},
        "size_bytes": told.size_bytes,
        "facts": facts,
        "shape": shape,
        "header_fault": told.fault,
    }
    row, _ = catalog.upsert_model_file(session, name, now=now, values=values)
    return row


def rig(session: Session, told: Document, name: str, now: datetime) -> RigRow:
    """The machine under its name; the same name for other hardware is refused."""
    if not RIG_NAME.fullmatch(name):
        raise UsageError(f"{name[:60]!r} is no name of a rig", advice="Letters, digits, - and _.")
    card = told.card or {}
    hardware = [[told.machine.get(word) for word in HARDWARE], [card.get(word) for word in CARD]]
    fingerprint = planner.digest(hardware)[:16]
    device = str(card.get("name") or "cpu")[:80]
    row, is_new = catalog.ensure_rig(session, name, now=now, device=device)
    if not is_new and row.fingerprint not in ("", fingerprint):
        raise UsageError(
            f"rig {name!r} is other hardware than the file was made on",
            advice="Choose another name with --rig.",
        )
    facts = {**told.machine, **({"card": told.card} if told.card else {})}
    return fleet.describe_rig(session, row.name, fingerprint, facts, now)
