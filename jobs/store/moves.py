"""What an event moves under negatives, and the retests that come of it; judges no result."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from datetime import datetime
from typing import Any, cast

from sqlmodel import Session, select

from jobs import negatives
from jobs.negative_tables import NegativeRow
from jobs.negatives import Grounds, Move
from jobs.pairing import Answer, pair
from jobs.planning.pairs import DRAFTERS
from jobs.store import catalog, forks, grounds, published, worlds
from jobs.store import negatives as store
from jobs.store.grounds import files_of, newest_revision
from jobs.store.retests import Again, requeue
from jobs.tables import EngineRow, EventRow, JobRow, ModelFileRow, RevisionRow

REVISIONS = frozenset(
    {
        "release",
        "fork_pushed",
        "branch_created",
        "upstream_synced",
        "feature_absorbed",
        "fork_capability_changed",
    }
)
DRAFTER_KINDS = frozenset({"drafter_published", "mtp_variant_published"})
ISSUES = frozenset({"issue_closed", "issue_moved", "pr_merged"})


def moved_by(
    session: Session, event: EventRow, now: datetime, *, budget_hours: float = 0.0
) -> list[JobRow]:
    """Retests of the negatives that an event tells news of, one for each; those that are new."""
    jobs: list[JobRow] = []
    for row, move, again in _concerned(session, event, now):
        jobs += requeue(session, row, [move], now, replace(again, budget_hours=budget_hours))
    return jobs


def _concerned(
    session: Session, event: EventRow, now: datetime
) -> Iterator[tuple[NegativeRow, Move, Again]]:
    """The standing negatives that an event is about, and what it moves under each."""
    if event.kind in REVISIONS:
        yield from _by_revision(session, event)
    elif event.kind in DRAFTER_KINDS:
        yield from _by_drafter(session, event, now)
    elif event.kind in ISSUES:
        yield from _by_issue(session, event)


def _by_revision(session: Session, event: EventRow) -> Iterator[tuple[NegativeRow, Move, Again]]:
    for ask in catalog.asked_by(event):
        revision = _revision(session, event, ask)
        if revision is None:
            continue
        engine = session.get_one(EngineRow, revision.engine_id)
        today = Grounds(**grounds.at(revision))
        for row in store.standing(session, engine_ids=[revision.engine_id]):
            then = grounds.read(row)
            if not then.commit or today.place > then.place:
                move = negatives.advanced(engine.name, then, today, commits=_commits(event))
                yield row, move, Again(revision=revision, event_id=event.id)


def _revision(session: Session, event: EventRow, ask: Mapping[str, Any]) -> RevisionRow | None:
    """What the event is about: its own revision, or the head at which it was noticed."""
    if ask["revision_id"]:
        return session.get(RevisionRow, ask["revision_id"])
    facts: Mapping[str, Any] = event.payload.get("facts") or event.payload
    query = select(RevisionRow).where(
        RevisionRow.engine_id == ask["engine_id"], RevisionRow.commit == str(facts.get("after"))
    )
    return session.exec(query).first()


def _commits(event: EventRow) -> int | None:
    """How many commits came, as far as the event counts them."""
    facts: Mapping[str, Any] = event.payload.get("facts") or event.payload
    for name in ("new_patches", "absorbed"):
        if isinstance(facts.get(name), int) and facts[name] > 0:
            return int(facts[name])
    return None


def _by_drafter(
    session: Session, event: EventRow, now: datetime
) -> Iterator[tuple[NegativeRow, Move, Again]]:
    """A drafter helps where a drafter is asked for and may go with the target."""
    rows = [row for row in store.standing(session) if row.drafter_file_id is not None]
    if not rows:
        return
    drafter, _ = published.file_of(session, event, now)
    if drafter is None or worlds.known_file(drafter).role not in DRAFTERS:
        return
    for row in rows:
        target = files_of(session, row)["target"]
        if row.drafter_file_id == drafter.id or not _may_pair(session, row, target, drafter):
            continue
        short = drafter.name.rpartition("/")[2].rpartition(":")[2]
        move = negatives.drafter_appeared(short, drafter.sha256)
        yield row, move, Again(drafter=drafter, event_id=event.id)


def _may_pair(
    session: Session, row: NegativeRow, target: ModelFileRow, drafter: ModelFileRow
) -> bool:
    """Whether nothing speaks against the pair; without headers, whether they are of one model."""
    shape, other = worlds.known_file(target).shape, worlds.known_file(drafter).shape
    if shape is None or other is None:
        return target.model_class.lower() == drafter.model_class.lower()
    engine = session.get_one(EngineRow, row.engine_id)
    revision = newest_revision(session, row.engine_id)
    if revision is None:
        return True
    state = worlds.known_revision(engine, revision).state
    return pair(shape, state=state, drafter=other).answer is not Answer.INCOMPATIBLE


def _by_issue(session: Session, event: EventRow) -> Iterator[tuple[NegativeRow, Move, Again]]:
    """An issue that somebody linked moved; a note may name the stacks it is about."""
    name, number = str(event.payload.get("full_name")), event.payload.get("number")
    linked = forks.linked_issue(session, name, number) if isinstance(number, int) else None
    if linked is None:
        return
    words = set(linked.note.replace(",", " ").split())
    rows = [
        row
        for row in store.standing(session)
        if row.engine_id == event.engine_id or f"{name}#{number}" in grounds.read(row).issues
    ]
    named = {row.stack for row in rows} & words
    for row in rows:
        if not named or row.stack in named:
            number = cast(int, event.id)
            answered = event.kind == "issue_moved"
            told = negatives.issue_answered if answered else negatives.issue_moved
            yield row, told(event.title, number), Again(event_id=number)
