"""Model files as people choose them: ours by name, the hub's by theirs, the same bytes once.

A file of the hub has the name by which commands find it there: `hf:OWNER/REPO/PATH`.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from sqlmodel import Session, col, select

from jobs.errors import Permanent, UsageError, did_you_mean
from jobs.fit.shape import Shape
from jobs.fit.stored import shape_in
from jobs.store import hub_models
from jobs.tables import ModelFileRow

MOST_MODELS = 1000
MOST_OF_HUB = 300
"""So many of the hub's newest files are offered; any other is found by its name."""


UNREAD = "its header was not read yet"


@dataclass(frozen=True)
class KnownModel:
    """A model file as its rows tell it; `fault` says why there is no shape.

    `also` are the other names of the same bytes, `id` is our own row's where we have one.
    """

    name: str
    role: str
    model_class: str
    quantisation: str
    sha256: str
    size_bytes: int | None
    facts: Mapping[str, Any] | None
    shape: Shape | None
    fault: str
    also: tuple[str, ...] = ()
    id: int | None = None

    @property
    def names(self) -> tuple[str, ...]:
        """Every name of these bytes."""
        return (self.name, *self.also)

    def joined(self, other: KnownModel) -> KnownModel:
        """The same bytes under the names of both; what one does not know is the other's."""
        knows_more = other.shape is not None or (self.fault == UNREAD and bool(other.fault))
        read = other if self.shape is None and knows_more else self
        return replace(
            self,
            also=(*self.also, *other.names),
            role=read.role,
            facts=read.facts or self.facts,
            shape=read.shape,
            fault=read.fault,
            size_bytes=self.size_bytes or other.size_bytes,
            quantisation=self.quantisation or other.quantisation,
        )


def known_models(session: Session) -> tuple[KnownModel, ...]:
    """Our model files by name, then the hub's by theirs; each digest is there once."""
    query = select(ModelFileRow).order_by(col(ModelFileRow.name)).limit(MOST_MODELS)
    ours = [of_row(row) for row in session.exec(query)]
    there = [_offered(each) for each in hub_models.listed(session, limit=MOST_OF_HUB)]
    found: dict[str, KnownModel] = {}
    for each in (*ours, *sorted(there, key=lambda model: model.name)):
        key = each.sha256 or each.name
        found[key] = found[key].joined(each) if key in found else each
    return tuple(found.values())


def shape_named(session: Session, name: str, *, what: str) -> Shape:
    """The shape of a known model file; raises UsageError for one that has none."""
    found = model_named(session, name)
    if found is None:
        raise UsageError(
            f"the {what} {name[:80]!r} is no known model file",
            advice=did_you_mean(name, _names(session)),
        )
    if found.shape is None:
        raise UsageError(
            f"the {what} {name[:80]!r} has no known shape: {found.fault}",
            advice="Choose a model whose header was read.",
        )
    return found.shape


def model_named(session: Session, name: str) -> KnownModel | None:
    """The model of a name of ours or of the hub; its header may have been read at either place.

    Raises UsageError where a quantisation of a repository means several files.
    """
    row = session.exec(select(ModelFileRow).where(ModelFileRow.name == name)).first()
    if row is None:
        there = hub_models.named(session, name)
        return _of_hub(there) if there else None
    ours = of_row(row)
    if ours.shape is None:
        first = next(iter(row.source.get("shards") or ()), row.sha256)
        there = hub_models.with_digest(session, row.sha256, first=str(first))
        return ours.joined(_of_hub(there)) if there else ours
    return ours


def of_row(row: ModelFileRow) -> KnownModel:
    """A model file of ours."""
    shape, damage = _shape_of(row.shape)
    fault = damage if row.shape is not None else row.header_fault or damage
    return KnownModel(
        name=row.name,
        role=str((row.facts or {}).get("role") or row.role),
        model_class=row.model_class,
        quantisation=row.quantisation,
        sha256=row.sha256,
        size_bytes=row.size_bytes,
        facts=row.facts,
        shape=shape,
        fault=fault,
        id=row.id,
    )


def _of_hub(found: hub_models.Found) -> KnownModel:
    shape, damage = _shape_of(found.shape)
    return KnownModel(
        name=found.name,
        role=found.role,
        model_class="",
        quantisation=found.quantisation,
        sha256=found.sha256,
        size_bytes=found.size_bytes,
        facts=found.facts,
        shape=shape,
        fault=found.fault or damage,
    )


def _offered(found: hub_models.Found) -> KnownModel:
    """What a form can offer: a name that nobody can type is told, and no choice."""
    model = _of_hub(found)
    if model.shape is None or found.can_be_typed:
        return model
    return replace(model, shape=None, fault="its name is too long, or holds signs that nobody sees")


def _names(session: Session) -> list[str]:
    """Names alone, so that a wrong one costs no reading of shapes."""
    query = select(ModelFileRow.name).order_by(col(ModelFileRow.name)).limit(MOST_MODELS)
    return [*session.exec(query), *hub_models.names(session, limit=MOST_OF_HUB)]


def _shape_of(stored: Mapping[str, Any] | None) -> tuple[Shape | None, str]:
    """The stored shape, or why there is none."""
    if stored is None:
        return None, UNREAD
    try:
        return shape_in(stored), ""
    except Permanent as damage:
        return None, damage.detail
