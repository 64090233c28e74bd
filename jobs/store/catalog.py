"""Queries on what we know: engines, revisions, events, model files, rigs, stacks; none commits."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from datetime import datetime, timedelta
from typing import Any, TypeVar

from sqlmodel import Session, col, func, select

from jobs.errors import UsageError, did_you_mean
from jobs.hub_weights import HubWeight
from jobs.tables import EngineRow, EventRow, ModelFileRow, RevisionRow, RigRow, StackRow
from jobs.terminal import sound

Row = TypeVar("Row", EngineRow, ModelFileRow, RigRow, StackRow)

SHORTEST_SHA = 7
NOTHING_WATCHED = (
    "nothing is watched yet: `forkscout watchlist import demo` brings packages, "
    "`forkscout watchlist import fork-chain` forks of llama.cpp"
)


def engines(session: Session, *, retired: bool = False) -> list[EngineRow]:
    """Engines by name; with `retired`, those too that no watch list names any more."""
    query = select(EngineRow).order_by(col(EngineRow.name))
    if not retired:
        query = query.where(col(EngineRow.retired).is_(False))
    return list(session.exec(query))


def is_watched(session: Session, engine_id: int | None) -> bool:
    """Whether that is an engine which a watch list names now."""
    row = session.get(EngineRow, engine_id) if engine_id is not None else None
    return row is not None and not row.retired


def engine_named(session: Session, name: str) -> EngineRow:
    """The engine of that name, retired or not."""
    return _named(session, EngineRow, "engine", name)


def lock_engine(session: Session, engine_id: int) -> EngineRow:
    """The engine's row, held until the transaction ends, so that two watchers take turns."""
    return session.exec(select(EngineRow).where(EngineRow.id == engine_id).with_for_update()).one()


def upsert_engine(
    session: Session, name: str, *, now: datetime, values: Mapping[str, Any]
) -> tuple[EngineRow, bool]:
    """The engine of that name with `values`, and whether anything is different now."""
    return _upsert(session, EngineRow, name, now=now, values=values)


def revisions_of(session: Session, engine_id: int) -> list[RevisionRow]:
    """What we have seen of an engine, oldest first."""
    query = select(RevisionRow).where(RevisionRow.engine_id == engine_id)
    return list(session.exec(query.order_by(col(RevisionRow.order_key), col(RevisionRow.id))))


def revision_at(session: Session, engine_id: int, commit: str) -> RevisionRow | None:
    """The known revision of an engine at exactly this full commit."""
    query = select(RevisionRow).where(
        RevisionRow.engine_id == engine_id, RevisionRow.commit == commit
    )
    return session.exec(query).first()


def revision_named(session: Session, engine: EngineRow, text: str) -> RevisionRow:
    """One revision of `engine` by its label, its commit, or the first seven or more of its sha."""
    known = revisions_of(session, engine.id or 0)
    found = [row for row in known if text in (row.label, row.commit)]
    if not found and len(text) >= SHORTEST_SHA:
        found = [row for row in known if row.commit.startswith(text.lower())]
    if len(found) == 1:
        return found[0]
    if found:
        raise UsageError(
            f"{text[:80]!r} means {len(found)} revisions of {engine.name}",
            advice="give the full sha: " + ", ".join(row.commit for row in found[:4]),
        )
    raise UsageError(
        f"{engine.name} has no known revision {text[:80]!r}",
        advice=did_you_mean(
            text,
            [row.label for row in known],
            none="look for revisions first: forkscout scout run",
            listed_by="forkscout events --kind release",
        ),
    )


def order_key_after(session: Session, engine_id: int, claimed: datetime, now: datetime) -> str:
    """Where a commit stands that a watched branch moved to now: after all that was seen before.

    The date that it claims is a stranger's word: taken where it lies between that and now.
    """
    query = select(func.max(RevisionRow.order_key)).where(
        RevisionRow.engine_id == engine_id, col(RevisionRow.committed_at).is_not(None)
    )
    newest = session.exec(query).one()
    at = min(claimed, now)
    if newest:
        at = max(at, datetime.fromisoformat(newest) + timedelta(microseconds=1))
    return at.isoformat()


def add_revision(
    session: Session,
    *,
    engine_id: int,
    commit: str,
    label: str,
    order_key: str = "",
    committed_at: datetime | None = None,
    proposed: bool | None = None,
    now: datetime,
) -> RevisionRow:
    """The revision with that commit, made if it was not known.

    `proposed` says whether only a pull request has it, None where nobody looked. One that a branch
    has by now is proposed no more.
    """
    known = revision_at(session, engine_id, commit)
    if known is not None:
        if proposed is False and known.proposed:
            known.proposed = False
            session.add(known)
        return known
    row = RevisionRow(
        engine_id=engine_id,
        commit=commit,
        label=label,
        order_key=order_key,
        committed_at=committed_at,
        proposed=bool(proposed),
        first_seen_at=now,
    )
    session.add(row)
    session.flush()
    return row


def add_event(
    session: Session,
    *,
    key: str,
    kind: str,
    title: str,
    now: datetime,
    engine_id: int | None = None,
    revision_id: int | None = None,
    payload: Mapping[str, Any] | None = None,
    happened_at: datetime | None = None,
) -> EventRow | None:
    """The new event, or None where one with that key was written before."""
    if session.exec(select(EventRow.id).where(EventRow.key == key)).first() is not None:
        return None
    row = EventRow(
        key=key,
        kind=kind,
        engine_id=engine_id,
        revision_id=revision_id,
        title=title,
        payload=dict(payload or {}),
        happened_at=happened_at,
        seen_at=now,
    )
    session.add(row)
    session.flush()
    return row


def plan_again(
    session: Session,
    keys: Collection[str],
    *,
    engine_id: int,
    revision_id: int,
    replaces: str | None,
    now: datetime,
) -> None:
    """Let planning act for this engine on an event that was told by one of these keys.

    A head that came back is told once, and is again what has to be measured; a push that another
    engine of the repository told is measured for each that watches the branch.
    """
    query = select(EventRow).where(col(EventRow.key).in_(keys)).with_for_update()
    row = session.exec(query.order_by(col(EventRow.id)).limit(1)).first()
    if row is None:
        return
    asks = {each["engine_id"]: each for each in asked_by(row)} if not row.planned else {}
    asks[engine_id] = {"engine_id": engine_id, "revision_id": revision_id, "replaces": replaces}
    if row.engine_id == engine_id:
        row.revision_id = revision_id
        row.payload = {**row.payload, "replaces": replaces}
    row.payload = {**row.payload, "asks": list(asks.values()), "again_at": now.isoformat()}
    row.planned = False
    session.add(row)


def asked_by(event: EventRow) -> list[dict[str, Any]]:
    """For which engines an event is to be planned, with revision and replaced head of each."""
    own = {
        "engine_id": event.engine_id,
        "revision_id": event.revision_id,
        "replaces": event.payload.get("replaces"),
    }
    return list(event.payload.get("asks") or [own])


def is_told(session: Session, keys: Collection[str]) -> bool:
    """Whether an event with one of these keys was written."""
    if not keys:
        return False
    query = select(EventRow.id).where(col(EventRow.key).in_(keys))
    return session.exec(query.limit(1)).first() is not None


def events(
    session: Session,
    *,
    limit: int = 50,
    kind: str | None = None,
    engine_id: int | None = None,
    since: datetime | None = None,
) -> list[EventRow]:
    """The newest events, newest first; of one kind, one engine or seen since then, where asked."""
    query = select(EventRow).order_by(col(EventRow.seen_at).desc(), col(EventRow.id).desc())
    if kind is not None:
        query = query.where(EventRow.kind == kind)
    if engine_id is not None:
        query = query.where(EventRow.engine_id == engine_id)
    if since is not None:
        query = query.where(col(EventRow.seen_at) >= since)
    return list(session.exec(query.limit(limit)))


def event_kinds(session: Session) -> set[str]:
    """Every kind of event that was ever written."""
    return set(session.exec(select(EventRow.kind).distinct()))


def unplanned_events(session: Session, *, limit: int = 100) -> list[EventRow]:
    """Events nobody has acted on yet, oldest first."""
    query = select(EventRow).where(col(EventRow.planned).is_(False)).order_by(col(EventRow.id))
    return list(session.exec(query.limit(limit)))


def model_files(session: Session) -> list[ModelFileRow]:
    """Weight files by name."""
    return list(session.exec(select(ModelFileRow).order_by(col(ModelFileRow.name))))


def model_named(session: Session, name: str) -> ModelFileRow:
    """The weight file of that name."""
    return _named(session, ModelFileRow, "model", name)


def upsert_model_file(
    session: Session, name: str, *, now: datetime, values: Mapping[str, Any]
) -> tuple[ModelFileRow, bool]:
    """The weight file of that name with `values`; its sha256 is its identity and never changes."""
    known = session.exec(select(ModelFileRow).where(ModelFileRow.name == name)).first()
    if known is not None and known.sha256 != values["sha256"]:
        raise UsageError(
            f"model {name!r} is known with sha256 {known.sha256}, now asked with "
            f"{values['sha256']}",
            advice="another file needs another name: results are kept under this one",
        )
    return _upsert(session, ModelFileRow, name, now=now, values=values)


def model_with(session: Session, sha256: str) -> ModelFileRow | None:
    """A weight file with that digest; the same bytes under two names are one file."""
    query = select(ModelFileRow).where(ModelFileRow.sha256 == sha256)
    return session.exec(query.order_by(col(ModelFileRow.id)).limit(1)).first()


def add_hub_file(session: Session, weight: HubWeight, *, now: datetime) -> ModelFileRow:
    """A row for a weight of the hub; a name that is taken by other bytes gets the commit."""
    names = set(session.exec(select(ModelFileRow.name)))
    taken = weight.name in names
    name = f"{weight.name}@{weight.commit[:12]}" if taken else weight.name
    values = {
        "model_class": weight.stem,
        "sha256": weight.sha256,
        "source": weight.source,
        "size_bytes": weight.size_bytes,
    }
    row, _ = upsert_model_file(session, name, now=now, values=values)
    return row


def rigs(session: Session) -> list[RigRow]:
    """Rigs by name."""
    return list(session.exec(select(RigRow).order_by(col(RigRow.name))))


def rig_named(session: Session, name: str) -> RigRow:
    """The rig of that name."""
    return _named(session, RigRow, "rig", name)


def ensure_rig(
    session: Session, name: str, *, now: datetime, device: str = "cpu"
) -> tuple[RigRow, bool]:
    """The rig of that name, made if it was not known; what workers reported stays."""
    known = session.exec(select(RigRow).where(RigRow.name == name)).first()
    if known is not None:
        return known, False
    return _upsert(session, RigRow, name, now=now, values={"device": device})


def stacks(session: Session, *, engine_id: int | None = None) -> list[StackRow]:
    """Stacks by name, of one engine where asked."""
    query = select(StackRow).order_by(col(StackRow.name))
    if engine_id is not None:
        query = query.where(StackRow.engine_id == engine_id)
    return list(session.exec(query))


def stack_named(session: Session, name: str) -> StackRow:
    """The stack of that name."""
    return _named(session, StackRow, "stack", name)


def upsert_stack(
    session: Session, name: str, *, now: datetime, values: Mapping[str, Any]
) -> tuple[StackRow, bool]:
    """The stack of that name with `values`, and whether anything is different now."""
    return _upsert(session, StackRow, name, now=now, values=values)


def drop_stacks(session: Session, *, keep: Sequence[str]) -> list[str]:
    """Forget stacks not in `keep`: a stack only asks for benches, results name it in text."""
    gone = [row for row in stacks(session) if row.name not in set(keep)]
    for row in gone:
        session.delete(row)
    session.flush()
    return [row.name for row in gone]


def _upsert(
    session: Session, table: type[Any], name: str, *, now: datetime, values: Mapping[str, Any]
) -> tuple[Any, bool]:
    row = session.exec(select(table).where(table.name == name)).first()
    if row is None:
        row = table(name=name, created_at=now, **values)
        session.add(row)
        session.flush()
        return row, True
    different = {key: value for key, value in values.items() if getattr(row, key) != value}
    for key, value in different.items():
        setattr(row, key, value)
    session.add(row)
    session.flush()
    return row, bool(different)


def _named(session: Session, table: type[Row], kind: str, name: str) -> Row:
    name = sound(name)
    row = session.exec(select(table).where(table.name == name)).first()
    if row is None:
        raise _unknown(session, kind, name, col(table.name))
    return row


def _unknown(session: Session, kind: str, name: str, column: Any) -> UsageError:
    known = list(session.exec(select(column)))
    advice = did_you_mean(name, known) if known else NOTHING_WATCHED
    return UsageError(f"unknown {kind} {name[:80]!r}", advice=advice)
