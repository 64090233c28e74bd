"""Events as planning sees them: which nobody planned, in which order, what each is about.

It decides nothing, and takes no shape of a payload for granted.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, cast

from sqlalchemy import text, update
from sqlmodel import Session, col, select

from jobs.planning.drafts import Why
from jobs.planning_tables import LeftOutRow
from jobs.store import rules
from jobs.store.work import LARGEST_ID
from jobs.tables import UNPLANNED, EventRow, RevisionRow

NEW_REVISION = frozenset({"release", "fork_pushed", "branch_created", "upstream_synced"})
"""Kinds of event whose revision takes the place of an older one."""

CHUNK = 500
TOOK_ITS_PLACE = "something newer took its place"

Ask = Mapping[str, Any]
"""For which engine an event is planned: its number, its revision's, and the head it replaces."""

Head = tuple[int, str]
"""A commit of an engine."""


@dataclass(frozen=True)
class Told:
    """What orders an event among others; `heads` are its own, `replaced` those before them."""

    id: int
    moment: datetime
    heads: frozenset[Head] = frozenset()
    replaced: frozenset[Head] = frozenset()


@dataclass(frozen=True)
class Look:
    """Events to plan in their order; `behind` are those that one of them stands for."""

    order: tuple[int, ...] = ()
    behind: Mapping[int, tuple[Told, ...]] = field(default_factory=dict)


def arranged(told: Iterable[Told]) -> Look:
    """Put events in order; one all of whose heads a later one replaced is planned with that one."""
    in_order = sorted(told, key=lambda each: (each.moment, each.id))
    replacing: dict[Head, int] = {}
    stands_for: dict[int, list[Told]] = {}
    order: list[int] = []
    for each in reversed(in_order):
        later = {replacing[head] for head in each.heads if head in replacing}
        covered = bool(each.heads) and all(head in replacing for head in each.heads)
        root = later.pop() if covered and len(later) == 1 else each.id
        if root == each.id:
            order.append(root)
        else:
            stands_for.setdefault(root, []).append(each)
        for head in each.replaced:
            replacing.setdefault(head, root)
    return Look(tuple(reversed(order)), {root: tuple(some) for root, some in stands_for.items()})


def look(session: Session) -> Look:
    """The events that nobody planned."""
    rows = session.execute(
        select(  # type: ignore[call-overload]
            EventRow.id,
            EventRow.kind,
            EventRow.engine_id,
            EventRow.revision_id,
            EventRow.payload,
            EventRow.seen_at,
        ).where(text(UNPLANNED))
    ).all()
    commits = _commits(session, {n for row in rows for n in _numbers(row, "revision_id")})
    return arranged(
        Told(
            row.id,
            moment(row.payload, row.seen_at),
            *(_heads(row, commits) if row.kind in NEW_REVISION else ()),
        )
        for row in rows
    )


def moment(payload: Any, seen_at: datetime) -> datetime:
    """When an event last said what has to be done: the head of a branch may have come back."""
    again = payload.get("again_at") if isinstance(payload, Mapping) else None
    try:
        found = datetime.fromisoformat(again) if isinstance(again, str) else seen_at
    except ValueError:
        return seen_at
    return found if found.tzinfo is not None else seen_at


def _numbers(row: Any, name: str) -> Iterator[int]:
    for ask in _asks(row):
        number = ask.get(name)
        if isinstance(number, int) and 0 < number <= LARGEST_ID:
            yield number


def _asks(row: Any) -> Iterator[Ask]:
    """What an event asks for, as far as it has the shape that it should."""
    payload = row.payload if isinstance(row.payload, Mapping) else {}
    asks = payload.get("asks")
    if isinstance(asks, list) and asks:
        yield from (ask for ask in asks if isinstance(ask, Mapping))
    elif not asks:
        yield {
            "engine_id": row.engine_id,
            "revision_id": row.revision_id,
            "replaces": payload.get("replaces"),
        }


def _heads(row: Any, commits: Mapping[int, str]) -> tuple[frozenset[Head], frozenset[Head]]:
    heads: set[Head] = set()
    replaced: set[Head] = set()
    for ask in _asks(row):
        engine, revision, before = (
            ask.get(name) for name in ("engine_id", "revision_id", "replaces")
        )
        if not isinstance(engine, int) or not isinstance(revision, int) or revision not in commits:
            return frozenset(), frozenset()
        heads.add((engine, commits[revision]))
        if isinstance(before, str) and before != commits[revision]:
            replaced.add((engine, before))
    return frozenset(heads), frozenset(replaced)


def _commits(session: Session, numbers: Collection[int]) -> dict[int, str]:
    found: dict[int, str] = {}
    wanted = sorted(numbers)
    for at in range(0, len(wanted), CHUNK):
        query = select(RevisionRow.id, RevisionRow.commit).where(
            col(RevisionRow.id).in_(wanted[at : at + CHUNK])
        )
        found |= {cast(int, number): commit for number, commit in session.exec(query)}
    return found


def unplanned(session: Session, number: int) -> EventRow | None:
    """The event with this number, locked, unless somebody planned it."""
    query = select(EventRow).where(EventRow.id == number, text(UNPLANNED)).with_for_update()
    return session.exec(query.execution_options(populate_existing=True)).first()


def pass_over(
    session: Session, behind: Collection[Told], stands: EventRow, now: datetime
) -> list[Head]:
    """Mark events as planned whose heads a newer one replaced; the heads that they replaced.

    One that has happened again meanwhile is left as it is.
    """
    then = {each.id: each for each in behind}
    gone: list[Told] = []
    for number_chunk in _chunks(sorted(then)):
        query = select(EventRow).where(col(EventRow.id).in_(number_chunk), text(UNPLANNED))
        for row in session.exec(query.with_for_update()):
            told = then[cast(int, row.id)]
            if moment(row.payload, row.seen_at) != told.moment:
                continue
            row.planned = True
            gone.append(told)
            session.add_all((row, _passed_over(row, stands, now)))
    heads = {head for told in gone for head in told.heads}
    for engine_id in {engine_id for engine_id, _ in heads}:
        for some in _chunks(sorted(commit for owner, commit in heads if owner == engine_id)):
            mark = update(RevisionRow).where(
                col(RevisionRow.engine_id) == engine_id, col(RevisionRow.commit).in_(some)
            )
            session.execute(mark.values(replaced=True))
    session.flush()
    return sorted({head for told in gone for head in (*told.replaced, *told.heads)})


def _passed_over(row: EventRow, stands: EventRow, now: datetime) -> LeftOutRow:
    return LeftOutRow(
        event_id=cast(int, row.id),
        identity=f"event:{row.id}",
        what=row.title[: rules.LONGEST_DETAIL],
        why=Why.REPLACED.value,
        detail=f"event {stands.id} of the same look took its place: {stands.title}"[
            : rules.LONGEST_DETAIL
        ],
        left_at=now,
        closed_at=now,
        ending=TOOK_ITS_PLACE,
    )


def _chunks(values: list[Any]) -> Iterator[list[Any]]:
    return (values[at : at + CHUNK] for at in range(0, len(values), CHUNK))


def revisions_of(session: Session, heads: Iterable[Head]) -> list[RevisionRow]:
    """The known ones of these heads."""
    by_engine: dict[int, list[str]] = {}
    for engine_id, commit in heads:
        by_engine.setdefault(engine_id, []).append(commit)
    return [
        row
        for engine_id, commits in by_engine.items()
        for some in _chunks(commits)
        for row in session.exec(
            select(RevisionRow).where(
                RevisionRow.engine_id == engine_id, col(RevisionRow.commit).in_(some)
            )
        )
    ]
