"""What the pre-flight says of a question, before anything is downloaded or built; reads only."""

from __future__ import annotations

from dataclasses import dataclass

from sqlmodel import Session, select

from jobs.errors import Permanent, UsageError
from jobs.fit.estimate import Fit, estimate, judge
from jobs.fit.setup import Card, Setup
from jobs.fit.shape import Shape
from jobs.fit.stored import shape_in
from jobs.known_revisions import state_of_revision
from jobs.store.grounds import Asked, memory_of
from jobs.tables import ModelFileRow, RigRow


@dataclass(frozen=True)
class Opinion:
    """Whether it should fit, None where it cannot judge, and the sentence that says why."""

    fit: Fit | None
    sentence: str

    @property
    def disagrees(self) -> bool:
        """Whether it contradicts somebody who says that it does not fit."""
        return self.fit is Fit.FITS


def opinion(session: Session, asked: Asked) -> Opinion:
    """The pre-flight's word, or why it could not be asked."""
    rig = session.exec(select(RigRow).where(RigRow.name == asked.question.rig)).first()
    memory = memory_of(rig) if rig else None
    shapes = {role: _shape(row) for role, row in asked.files.items()}
    unread = [asked.files[role].name for role, shape in shapes.items() if shape is None]
    target = shapes.get("target")
    if target is None or unread:
        return _unasked(f"the header of {unread[0]} was not read" if unread else "it has no target")
    if memory is None:
        return _unasked(f"the memory of {asked.question.rig} is not known")
    revision, engine, intent = asked.revision, asked.engine, asked.question.intent
    kv = str(intent.get("kv", "f16"))
    try:
        setup = Setup(
            target=target,
            card=Card(memory),
            context=asked.question.context_tokens,
            state=state_of_revision(
                engine.name,
                repo=engine.repo or "",
                label=revision.label if revision else "",
                commit=revision.commit if revision else "",
                day=revision.committed_at.date() if revision and revision.committed_at else None,
            ),
            key=kv,
            value=kv,
            batch=int(intent.get("batch", 2048)),
            ubatch=int(intent.get("ubatch", 512)),
            drafter=shapes.get("drafter"),
            projector=shapes.get("projector"),
        )
        found = judge(estimate(setup))
    except (UsageError, ValueError) as refused:
        return _unasked(str(refused))
    return Opinion(found.fit, found.sentence)


def _unasked(why: str) -> Opinion:
    return Opinion(None, f"could not be asked: {why}")


def _shape(row: ModelFileRow) -> Shape | None:
    try:
        return shape_in(row.shape) if row.shape is not None else None
    except Permanent:
        return None
