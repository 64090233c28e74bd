"""Measures servers that run already, one or two in turns; no queue, no rows, nothing is started."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime

from jobs.control import Control
from jobs.dialect.boots import compared
from jobs.dialect.events import echo_of
from jobs.dialect.failures import FAILURES
from jobs.errors import JobFailure
from jobs.model import Boot, BootFacts, Measurement
from jobs.scenarios import Scenario
from workers.answers import Patience, ask
from workers.autopsy import FIRST_REQUEST
from workers.client import EngineClient
from workers.elsewhere import Served
from workers.one_run import WARM_UP_TOKENS


@dataclass(frozen=True)
class Arm:
    """One of the servers that are compared, and the client that asks it."""

    name: str
    served: Served
    client: EngineClient


@dataclass(frozen=True)
class Wish:
    """What is asked: each scenario `runs` times a round; with two arms a round is one turn each."""

    scenarios: tuple[Scenario, ...]
    runs: int
    rounds: int = 1
    patience: Patience = field(default_factory=Patience)


@dataclass(frozen=True)
class Turn:
    """One arm's requests of one round, in the order in which they were made."""

    arm: str
    round: int
    boot: Boot
    failure: JobFailure | None = None


@dataclass(frozen=True)
class Step:
    """How far a bench is: what is asked now, how fast the last answer was, when it may end."""

    arm: str
    round: int
    scenario: str
    run: int
    runs: int
    tokens: int = 0
    last_tps: float | None = None
    left_seconds: float | None = None

    @property
    def what(self) -> str:
        """In words."""
        return f"run {self.run} of {self.runs}" if self.run else "warm-up"


class _Alive:
    """A server elsewhere: nobody can say that it ended but its own silence."""

    def poll(self) -> int | None:
        return None


def measure(
    arms: Sequence[Arm], wish: Wish, *, control: Control, tell: Callable[[Step], None]
) -> Iterator[Turn]:
    """Turns as they end: A, B, A, B. An arm that fails is not asked again; raises Stopped."""
    clock = _Clock(len(arms) * wish.rounds * sum(1 for _ in _schedule(wish)))
    dead: set[str] = set()
    for number in range(1, wish.rounds + 1):
        for arm in arms:
            if arm.name not in dead:
                turn = _turn(arm, wish, number, clock, control, tell)
                if turn.failure:
                    dead.add(arm.name)
                yield turn


def _schedule(wish: Wish) -> Iterator[tuple[Scenario, int]]:
    for scenario in wish.scenarios:
        yield from ((scenario, run) for run in range(wish.runs + 1))


@dataclass
class _Clock:
    """What is left, by the requests that were answered."""

    total: int
    done: int = 0
    seconds: float = 0.0

    def left(self) -> float | None:
        return self.seconds / self.done * (self.total - self.done) if self.done else None

    def hear(self, seconds: float) -> None:
        self.done += 1
        self.seconds += seconds


def _turn(
    arm: Arm,
    wish: Wish,
    number: int,
    clock: _Clock,
    control: Control,
    tell: Callable[[Step], None],
) -> Turn:
    runs: list[Measurement] = []
    failure: JobFailure | None = None
    name: str | None = None
    last_tps: float | None = None
    started_at = datetime.now(UTC)
    for scenario, run in _schedule(wish):
        step = Step(arm.name, number, scenario.key, run, wish.runs, 0, last_tps, clock.left())
        began = time.monotonic()
        try:
            found = _one(arm, scenario, run, name, wish.patience, control, step, tell)
        except JobFailure as fault:
            failure = fault
            break
        clock.hear(time.monotonic() - began)
        name = name or found.model_echo or arm.served.model
        last_tps = found.decode_tps
        runs.append(found)
    speculates = arm.served.effective.speculative is True
    boot = Boot(
        number=number,
        load_seconds=0.0,
        facts=BootFacts(),
        effective=arm.served.effective,
        props={},
        slots=(),
        measurements=compared(runs, speculates=speculates),
        started_at=started_at,
    )
    return Turn(arm.name, number, boot, failure)


def _one(
    arm: Arm,
    scenario: Scenario,
    run: int,
    name: str | None,
    patience: Patience,
    control: Control,
    step: Step,
    tell: Callable[[Step], None],
) -> Measurement:
    """One request; a server may call itself otherwise than it is asked, but always the same."""
    asked = scenario
    if not run:
        asked = replace(scenario, filled_tokens=min(scenario.filled_tokens, WARM_UP_TOKENS))
    phase = step.what if run else FIRST_REQUEST
    tell(step)

    def hear(tokens: int) -> None:
        control.report("measure", done=tokens, total=asked.tokens, unit="tokens", note=step.what)
        tell(replace(step, tokens=tokens))

    answer = ask(
        arm.client,
        arm.served.request(asked, run, arm.served.filling(arm.client, asked, run)),
        tokens=asked.tokens,
        phase=phase,
        process=_Alive(),
        log_text=str,
        rules=FAILURES,
        patience=patience,
        control=control,
        on_tokens=hear,
    )
    found = arm.served.measure(
        answer.arrivals,
        scenario=asked,
        run=run,
        warmup=run == 0,
        wall_seconds=answer.wall_seconds,
        alias=name or echo_of([each.event for each in answer.arrivals], "") or arm.served.model,
    )
    return replace(found, scenario=scenario.key)
