"""Where the hub is asked: heeds the shared cool-downs and quotas; judges nothing."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime, timedelta

from sqlalchemy import Engine
from sqlmodel import Session

from jobs import clock
from jobs.config import Settings
from jobs.db import reading, writing
from jobs.store import source_states
from scout.github.answers import Quota
from scout.github.base import Happening
from scout.github.desk import Held
from scout.github.governor import Tier, allows
from scout.hub.answers import API, WINDOW_SECONDS, Answer, Kind
from scout.hub.client import Client

SHORTEST_BACKOFF = timedelta(minutes=1)
LONGEST_BACKOFF = timedelta(hours=1)


@dataclass(frozen=True)
class Outcome:
    """How one look at one place went: done, held back, or without an answer.

    `unfinished` asks for another look at once.
    """

    new: tuple[Happening, ...] = ()
    held: Held | None = None
    failed: Answer | None = None
    note: str = ""
    unfinished: bool = False


@dataclass(frozen=True)
class Desk:
    """One worker's way to the hub over the state it shares with all others."""

    database: Engine
    client: Client
    now: Callable[[], datetime]
    until: datetime | None = None

    def is_late(self) -> bool:
        """Whether this worker has other things to do by now."""
        return self.until is not None and self.now() >= self.until

    def seconds_left(self, most: float) -> float:
        """How long one file may take."""
        if self.until is None:
            return most
        return min(most, max((self.until - self.now()).total_seconds(), 1.0))

    def ask(
        self, question: Callable[[Client], Answer], tier: Tier, *, bucket: str = API
    ) -> Answer | Held:
        """The answer to one question, or why it was not asked."""
        if held := self.held(tier, bucket):
            return held
        answer = question(self.client)
        self.account(answer, bucket)
        return answer

    def held(self, tier: Tier, bucket: str = API) -> Held | None:
        """Why nothing of a bucket may be asked for now."""
        with reading(self.database) as session:
            for key in (self._cooldown(), self._cooldown(bucket)):
                cooling = source_states.source_state(session, key)
                if cooling and cooling.retry_at and cooling.retry_at > self.now():
                    return Held(cooling.retry_at, str(cooling.cursor.get("reason", "")))
            quota = self.quota(session, bucket)
        if quota is None or allows(tier, quota, now=self.now()):
            return None
        return Held(quota.reset_at, f"what is left of the quota is kept for tiers before {tier}")

    def quota(self, session: Session, bucket: str = API) -> Quota | None:
        """What the last reply said of one of this token's quotas."""
        row = source_states.source_state(session, self._quota(bucket))
        if row is None or row.retry_at is None:
            return None
        return Quota(int(row.cursor["limit"]), int(row.cursor["remaining"]), row.retry_at, bucket)

    def account(self, answer: Answer, bucket: str = API) -> None:
        """Write down what a reply said of quotas, and how long to leave the hub alone."""
        if answer.quota is None and not answer.limited:
            return
        now = self.now()
        with writing(self.database) as session:
            if answer.quota is not None:
                key = self._quota(answer.quota.bucket or bucket)
                row = source_states.lock_source_state(session, key, now)
                row.cursor = {"limit": answer.quota.limit, "remaining": answer.quota.remaining}
                row.retry_at = answer.quota.reset_at
            if answer.limited:
                stopped = bucket if answer.status == 429 else ""
                row = source_states.lock_source_state(session, self._cooldown(stopped), now)
                wait = answer.wait_seconds or WINDOW_SECONDS
                row.status, row.cursor = answer.status, {"reason": answer.reason}
                row.retry_at = max(now + timedelta(seconds=wait), row.retry_at or now)

    def cooldown_until(self, session: Session) -> datetime | None:
        """Until when the hub is left alone, if it is."""
        rows = source_states.source_states(session, self._cooldown())
        now = self.now()
        times = [row.retry_at for row in rows.values() if row.retry_at and row.retry_at > now]
        return max(times, default=None)

    def _cooldown(self, bucket: str = "") -> str:
        """Without a bucket, that of the token: it stops all."""
        return f"cooldown:hf:{self.client.identity}" + (f":{bucket}" if bucket else "")

    def _quota(self, bucket: str) -> str:
        return f"quota:hf:{self.client.identity}:{bucket}"


def backoff_until(answer: Answer, *, failures: int, now: datetime) -> datetime:
    """When a place that gave no answer is asked again."""
    doubled = SHORTEST_BACKOFF * int(2 ** min(max(failures - 1, 0), 10))
    wait = min(doubled, LONGEST_BACKOFF)
    asked = timedelta(seconds=answer.wait_seconds or 0.0)
    return now + (wait if wait > asked else asked)


def unanswered(answer: Answer | Held) -> Outcome | None:
    """The outcome where there is nothing to judge, else None."""
    if isinstance(answer, Held):
        return Outcome(held=answer)
    return Outcome(failed=answer) if answer.kind is Kind.NOT_KNOWN else None


def open_client(settings: Settings) -> Client:
    """The hub as the settings say."""
    return Client(
        home=settings.hub_home,
        token=settings.hf_token.get_secret_value(),
        base=settings.hf_endpoint,
    )


def open_desk(database: Engine, settings: Settings, *, seconds: float | None = None) -> Desk:
    """A desk as the settings say, that starts nothing new after so many seconds."""
    until = None if seconds is None else clock.now() + timedelta(seconds=seconds)
    return Desk(database, open_client(settings), clock.now, until)
