"""Column types every table uses: moments in UTC, JSON, large numbers; no naive time in a row."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

from sqlalchemy import JSON, BigInteger, DateTime, Dialect, TypeDecorator
from sqlmodel import Field


class UtcDateTime(TypeDecorator[datetime]):
    """A moment in UTC; naive values are refused, SQLite's come back aware."""

    impl = DateTime(timezone=True)
    cache_ok = True

    def process_bind_param(self, value: datetime | None, dialect: Dialect) -> datetime | None:
        if value is None:
            return None
        if value.tzinfo is None:
            raise ValueError(f"a moment without a time zone: {value!r}")
        return value.astimezone(UTC)

    def process_result_value(self, value: datetime | None, dialect: Dialect) -> datetime | None:
        if value is None:
            return None
        return value.replace(tzinfo=UTC) if value.tzinfo is None else value.astimezone(UTC)


def moment(**kwargs: Any) -> Any:
    return Field(sa_type=UtcDateTime, **kwargs)


def json_value(default: Any = dict) -> Any:
    return Field(default_factory=default, sa_type=JSON)


class _PlainJson(TypeDecorator[Any]):
    """JSON whose None is the column's NULL, so that it can be asked for."""

    impl = JSON(none_as_null=True)
    cache_ok = True


def json_or_nothing() -> Any:
    """JSON that a row may lack."""
    return Field(default=None, sa_type=_PlainJson)


def large(**kwargs: Any) -> Any:
    """A number beyond 2**31, which PostgreSQL's INTEGER refuses: bytes, and ids of others."""
    return Field(sa_type=BigInteger, **kwargs)
