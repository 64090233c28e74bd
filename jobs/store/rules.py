"""Queries on rules, budgets and what planning left out; the caller commits."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from datetime import datetime
from typing import Any, cast

from sqlalchemy import text
from sqlmodel import Session, SQLModel, col, select

from jobs.planning.drafts import LeftOut, Why
from jobs.planning_tables import OPEN, BudgetRow, LeftOutRow, RuleRow
from jobs.tables import EventRow, JobRow

MOST_LEFT_OUT = 200
"""So many reasons are kept of one event; a flood of them says no more."""

LONGEST_DETAIL = 500


def rules(session: Session) -> list[RuleRow]:
    """Rules of the watch lists in the order they are asked."""
    return list(session.exec(select(RuleRow).order_by(col(RuleRow.place), col(RuleRow.id))))


def upsert_rule(session: Session, name: str, *, now: datetime, values: Mapping[str, Any]) -> bool:
    """The rule of that name with `values`; whether anything is different now."""
    row = session.exec(select(RuleRow).where(RuleRow.name == name)).first()
    return _put(session, row, RuleRow(name=name, created_at=now, **values), values)


def budgets(session: Session) -> list[BudgetRow]:
    """Budgets of the watch lists by name."""
    return list(session.exec(select(BudgetRow).order_by(col(BudgetRow.name))))


def upsert_budget(session: Session, name: str, *, now: datetime, values: Mapping[str, Any]) -> bool:
    """The budget of that name with `values`; whether anything is different now."""
    row = session.get(BudgetRow, name)
    return _put(session, row, BudgetRow(name=name, created_at=now, **values), values)


def drop_rules(session: Session, *, keep: Collection[str]) -> list[str]:
    """Forget rules not in `keep`; jobs name the rule they came of in text."""
    return _drop(session, [row for row in rules(session) if row.name not in keep])


def drop_budgets(session: Session, *, keep: Collection[str]) -> list[str]:
    """Forget budgets not in `keep`."""
    return _drop(session, [row for row in budgets(session) if row.name not in keep])


def _put(
    session: Session, row: SQLModel | None, fresh: SQLModel, values: Mapping[str, Any]
) -> bool:
    if row is None:
        session.add(fresh)
        return True
    different = {key: value for key, value in values.items() if getattr(row, key) != value}
    for key, value in different.items():
        setattr(row, key, value)
    session.add(row)
    return bool(different)


def _drop(session: Session, gone: Sequence[RuleRow] | Sequence[BudgetRow]) -> list[str]:
    for row in gone:
        session.delete(row)
    session.flush()
    return [row.name for row in gone]


def leave_out(
    session: Session, event_id: int, reasons: Iterable[LeftOut], now: datetime
) -> list[LeftOutRow]:
    """Keep what was not queued for an event; said again it is one row, with the newest reason."""
    known = {row.identity: row for row in left_out(session, event_ids=[event_id], closed=True)}
    kept = []
    for reason in reasons:
        row = known.get(reason.identity)
        if row is None and len(known) >= MOST_LEFT_OUT:
            break
        row = row or LeftOutRow(
            event_id=event_id, identity=reason.identity, what="", why="", left_at=now
        )
        known[reason.identity] = row
        row.what, row.why, row.value = reason.what[:LONGEST_DETAIL], reason.why.value, reason.value
        row.detail, row.left_at = reason.detail[:LONGEST_DETAIL], now
        row.closed_at, row.ending = None, ""
        session.add(row)
        kept.append(row)
    session.flush()
    return kept


def left_out(
    session: Session,
    *,
    event_ids: Collection[int] | None = None,
    why: Why | None = None,
    closed: bool = False,
    limit: int = 1000,
) -> list[LeftOutRow]:
    """What was left out, the newest first and of one event the most valuable."""
    query = select(LeftOutRow)
    if event_ids is not None:
        query = query.where(col(LeftOutRow.event_id).in_(event_ids))
    if why is not None:
        query = query.where(LeftOutRow.why == why.value)
    if not closed:
        query = query.where(col(LeftOutRow.closed_at).is_(None))
    rows = session.exec(
        query.order_by(col(LeftOutRow.event_id).desc(), col(LeftOutRow.id)).limit(limit)
    )
    return sorted(rows, key=lambda row: (-row.event_id, -(row.value or 0.0), row.id or 0))


def held_back(session: Session, since: datetime) -> list[int]:
    """Events of which a budget cut something before that moment, the newest first."""
    query = select(LeftOutRow.event_id).where(
        text(OPEN), LeftOutRow.why == Why.BUDGET.value, col(LeftOutRow.left_at) < since
    )
    return sorted(set(session.exec(query.distinct())), reverse=True)


def close(rows: Iterable[LeftOutRow], now: datetime, *, ending: str) -> None:
    """These are settled."""
    for row in rows:
        row.closed_at, row.ending = now, ending


def jobs_of_events(session: Session, event_ids: Collection[int]) -> dict[int, list[JobRow]]:
    """The jobs that each of these events led to, and the baselines they brought along."""
    asked = col(JobRow.event_id).in_(list(event_ids))
    found: dict[int, list[JobRow]] = {number: [] for number in event_ids}
    for row in session.exec(select(JobRow).where(asked).order_by(col(JobRow.id))):
        found[cast(int, row.event_id)].append(row)
    return found


def event(session: Session, text: str) -> EventRow | None:
    """The event with that number or key."""
    if text.isascii() and text.isdecimal() and len(text) < 10:
        return session.get(EventRow, int(text))
    query = select(EventRow).where(EventRow.key == text)
    return session.exec(query).first()
