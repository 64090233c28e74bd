"""Where GitHub is asked: heeds the shared cool-down and the quota, keeps ETags; judges nothing."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Any

from sqlalchemy import Engine
from sqlmodel import Session

from jobs import clock
from jobs.config import Settings
from jobs.db import reading, writing
from jobs.store import source_states
from scout.github.answers import (
    CORE,
    GRAPHQL,
    Answer,
    Kind,
    Limit,
    Quota,
    cooldown_until,
)
from scout.github.client import Client
from scout.github.governor import Tier, allows


@dataclass(frozen=True)
class Page:
    """One page to be asked for; its address, parameters and token are what an ETag belongs to.

    `bucket` is the quota it is charged to.
    """

    place: str
    params: Mapping[str, str] = field(default_factory=dict)
    many: bool = True
    bucket: str = CORE


@dataclass(frozen=True)
class Held:
    """Nothing was asked: everybody waits until then, and why."""

    until: datetime
    reason: str


@dataclass(frozen=True)
class Desk:
    """One worker's way to GitHub over the state it shares with all others."""

    database: Engine
    client: Client
    now: Callable[[], datetime]
    until: datetime | None = None

    def is_late(self) -> bool:
        """Whether this worker has other things to do by now."""
        return self.until is not None and self.now() >= self.until

    def ask(self, page: Page, tier: Tier, *, conditional: bool = True) -> Answer | Held:
        """The answer for one page, or why it was not asked for."""
        with reading(self.database) as session:
            if held := self._held(session, tier, page.bucket):
                return held
            kept = source_states.source_state(session, self.page_key(page)) if conditional else None
            etag = kept.etag if kept else None
        answer = self.client.ask(page.place, page.params, etag=etag, many=page.many)
        return self._accounted(answer, page.bucket)

    def query(self, text: str, variables: Mapping[str, Any], tier: Tier) -> Answer | Held:
        """The answer to a question in GraphQL, or why it was not asked."""
        with reading(self.database) as session:
            if held := self._held(session, tier, GRAPHQL):
                return held
        return self._accounted(self.client.query(text, variables), GRAPHQL)

    def page_key(self, page: Page) -> str:
        """Under what a page's ETag is kept."""
        parts = [page.place, *(f"{k}={v}" for k, v in sorted(page.params.items()))]
        text = "\n".join([*parts, str(page.many), self.client.identity])
        return f"page:{hashlib.sha256(text.encode()).hexdigest()}"

    def remembered(self, session: Session, page: Page) -> dict[str, Any]:
        """What `remember` kept with a page's ETag."""
        row = source_states.source_state(session, self.page_key(page))
        return dict(row.cursor) if row else {}

    def remember(self, session: Session, page: Page, answer: Answer, **facts: Any) -> None:
        """Keep a page's ETag; in the transaction that keeps what the page said, never before."""
        row = source_states.lock_source_state(session, self.page_key(page), self.now())
        if answer.kind is Kind.PAGE:
            row.etag, row.cursor, row.status = answer.etag, facts, answer.status

    def forget(self, session: Session, pages: Iterable[Page]) -> None:
        """Ask for those pages in full the next time."""
        for page in pages:
            source_states.forget_source_state(session, self.page_key(page))

    def note_token(self, session: Session) -> None:
        """Keep the day on which GitHub says the token ends, where it says one."""
        ends_at = self.client.token_ends_at
        if ends_at is not None:
            row = source_states.lock_source_state(
                session, f"token:{self.client.identity}", self.now()
            )
            row.cursor = {"ends_at": ends_at.isoformat()}

    def _held(self, session: Session, tier: Tier, bucket: str) -> Held | None:
        for key in {self._cooldown(CORE), self._cooldown(bucket)}:
            cooling = source_states.source_state(session, key)
            if cooling and cooling.retry_at and cooling.retry_at > self.now():
                return Held(cooling.retry_at, str(cooling.cursor.get("reason", "")))
        quota = self.quota(session, bucket)
        if quota is None or allows(tier, quota, now=self.now()):
            return None
        return Held(quota.reset_at, f"what is left of the quota is kept for tiers before {tier}")

    def quota(self, session: Session, bucket: str = CORE) -> Quota | None:
        """What the last reply to this token said of one of its quotas."""
        row = source_states.source_state(session, self._quota(bucket))
        if row is None or row.retry_at is None:
            return None
        return Quota(int(row.cursor["limit"]), int(row.cursor["remaining"]), row.retry_at, bucket)

    def _accounted(self, answer: Answer, bucket: str) -> Answer:
        if answer.quota or answer.limit or answer.trusted:
            with writing(self.database) as session:
                self._account(session, answer, bucket)
        return answer

    def _account(self, session: Session, answer: Answer, bucket: str) -> None:
        now = self.now()
        if answer.quota is not None:
            key = self._quota(answer.quota.bucket or bucket)
            row = source_states.lock_source_state(session, key, now)
            row.cursor = {"limit": answer.quota.limit, "remaining": answer.quota.remaining}
            row.retry_at = answer.quota.reset_at
        cooling = source_states.source_state(session, self._cooldown(CORE))
        if answer.limit is None:
            over = cooling and (cooling.retry_at is None or cooling.retry_at <= now)
            if cooling and over and cooling.failures and answer.trusted:
                cooling.failures = 0
                session.add(cooling)
            return
        stopped = bucket if answer.limit is Limit.PRIMARY else CORE
        cooling = source_states.lock_source_state(session, self._cooldown(stopped), now)
        if cooling.retry_at is not None and cooling.retry_at > now:
            return
        cooling.failures += 1 if answer.limit is Limit.SECONDARY else 0
        cooling.status = answer.status
        cooling.retry_at = cooldown_until(answer, strikes=cooling.failures, now=now)
        cooling.cursor = {"reason": answer.reason, "limit": answer.limit.value}

    def _cooldown(self, bucket: str) -> str:
        """That of the core stops all: it also holds the limits that belong to no bucket."""
        return f"cooldown:{self.client.identity}" + ("" if bucket == CORE else f":{bucket}")

    def _quota(self, bucket: str) -> str:
        return f"quota:{self.client.identity}" + ("" if bucket == CORE else f":{bucket}")


def open_desk(database: Engine, settings: Settings, *, seconds: float | None = None) -> Desk:
    """A desk as the settings say, that starts nothing new after so many seconds."""
    client = Client(
        token=settings.github_token.get_secret_value().strip(), base=settings.github_api
    )
    until = None if seconds is None else clock.now() + timedelta(seconds=seconds)
    return Desk(database, client, clock.now, until)


def iso(moment: datetime) -> str:
    """A moment as GitHub writes it, always with `Z`: `+00:00` in an address is refused."""
    return moment.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
