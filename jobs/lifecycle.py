"""Which state may follow which, and what to do after a failure; decides, never stores."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import timedelta

from jobs.errors import Permanent
from jobs.model import Blame, State

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
    if failure_class == NO_SANDBOX:
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
