"""Which state may follow which, and what to do after a failure; decides, never stores."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta

from jobs.errors import Permanent
from jobs.model import Blame, Lane, State

_ENDED = frozenset({State.QUEUED})

MOVES: dict[State, frozenset[State]] = {
    State.QUEUED: frozenset(
        {State.LEASED, State.BLOCKED, State.CANCELLED, State.SUPERSEDED, State.EXPIRED}
    ),
    State.BLOCKED: frozenset({State.QUEUED, State.CANCELLED, State.SUPERSEDED, State.EXPIRED}),
    State.LEASED: frozenset(
        {State.RUNNING, State.QUEUED, State.BLOCKED, State.FAILED, State.CANCELLED, State.DEAD}
    ),
    State.RUNNING: frozenset(
        {
            State.SUCCEEDED,
            State.FAILED,
            State.QUEUED,
            State.BLOCKED,
            State.CANCELLED,
            State.DEAD,
        }
    ),
    State.SUCCEEDED: frozenset(),
    State.FAILED: _ENDED,
    State.CANCELLED: _ENDED,
    State.EXPIRED: _ENDED,
    State.SUPERSEDED: _ENDED,
    State.DEAD: _ENDED,
}
LIVE = frozenset({State.QUEUED, State.BLOCKED, State.LEASED, State.RUNNING})
HELD = frozenset({State.LEASED, State.RUNNING})

RETRY_DELAY = timedelta(seconds=30)  # long enough for a mirror or a disk to recover
RETRY_DELAY_LIMIT = timedelta(hours=1)
NO_SANDBOX = "no_sandbox"
NOT_APPROVED = "not_approved"
WAITING_CAUSES = frozenset({NO_SANDBOX, NOT_APPROVED})
"""Classes of failure that say: not before something else has happened."""

AGES_AFTER = timedelta(hours=24)  # a day in one lane is more than any night's rush takes
SOURCE_SHARE = 0.5  # more than half of a queue is hogging it, however many ask


def check_move(current: State, following: State) -> None:
    """Raise `Permanent` where `following` may not come after `current`."""
    if following not in MOVES[current]:
        raise Permanent(f"a job that is {current} cannot become {following}")


@dataclass(frozen=True)
class Next:
    """The state that follows a failure; `delay` is how long a queued job waits."""

    state: State
    delay: timedelta = timedelta(0)


def after_failure(blame: Blame, attempts: int, *, limit: int, failure_class: str = "") -> Next:
    """Only faults outside engine and configuration are tried again, `limit` times in all."""
    if failure_class in WAITING_CAUSES:
        return Next(State.BLOCKED)
    if blame in (Blame.ENGINE, Blame.CONFIGURATION):
        return Next(State.FAILED)
    if attempts >= limit:
        return Next(State.DEAD)
    return Next(State.QUEUED, retry_delay(attempts))


def after_loss(attempts: int, *, limit: int) -> Next:
    """A worker that fell silent costs an attempt; the last one makes a dead letter."""
    return Next(State.DEAD) if attempts >= limit else Next(State.QUEUED)


def retry_delay(attempts: int) -> timedelta:
    """Doubles with each attempt up to an hour."""
    doublings = min(max(0, attempts - 1), 10)
    return min(RETRY_DELAY_LIMIT, RETRY_DELAY * float(2**doublings))


def lane_above(lane: int) -> Lane | None:
    """Where a job that waited too long moves; people and confirmations stay before it."""
    if lane <= Lane.FRESH:
        return None
    return max(each for each in Lane if each < lane)


def ages_at(lane: int, due_at: datetime) -> datetime | None:
    """When a job that still waits moves up; None in the lanes that nothing moves up from."""
    return due_at + AGES_AFTER if lane_above(lane) else None


def over_share(used_seconds: Mapping[str, float], share: float) -> frozenset[str]:
    """The sources that used more than `share` of all that was used."""
    total = sum(used_seconds.values())
    return frozenset(name for name, used in used_seconds.items() if used > share * total)
