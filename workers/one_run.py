"""One request to a started server, from its prompt to its numbers; it starts and ends nothing."""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from jobs.control import Control
from jobs.dialect.events import gaps_ms, is_steady, text_of
from jobs.dialect.filling import filled
from jobs.dialect.openai import tokens_in
from jobs.model import Measurement, Validity
from jobs.scenarios import Scenario
from workers import autopsy
from workers.answers import Patience, ask
from workers.gpu import CardWatch
from workers.plan import ARMS, Place, Plan
from workers.readiness import Server, check_alive

AGAIN = 1_000_000
WARM_UP_TOKENS = 512
"""A first request compiles and allocates; it need not be deep to do so."""


def schedule(plan: Plan) -> Iterator[tuple[Scenario, int]]:
    """Each scenario's warm-up, which is run 0, and its runs; a fill is warmed up once for all."""
    warm = False
    for scenario in plan.scenarios:
        if not (warm and scenario.filled_tokens):
            yield scenario, 0
            warm = True
        yield from ((scenario, run) for run in range(1, plan.runs + 1))


@dataclass(frozen=True)
class Started:
    """One started server and everything its requests need."""

    plan: Plan
    place: Place
    server: Server
    watch: CardWatch | None
    control: Control
    patience: Patience
    began_at: float = field(default_factory=time.monotonic)

    def now(self) -> dict[str, Any]:
        """What machine and card say at this moment."""
        self.server.usage.look()
        return {
            "host_bytes": self.server.usage.memory_bytes or None,
            "host_curve": self.server.usage.curve(),
            **({"card": self.watch.stretch()} if self.watch else {}),
        }


@dataclass(frozen=True)
class At:
    """Which request of a bench it is; `again` counts warm-ups after the first."""

    boot: int
    position: int
    scenario: Scenario
    run: int
    runs: int
    again: int = 0

    @property
    def sent(self) -> int:
        """The run that seed and salt are made of: no warm-up shares them with a measured one."""
        return self.run or (AGAIN + self.again if self.again else 0)

    @property
    def asked(self) -> Scenario:
        """What is sent: a warm-up fills no more than it takes to wake the engine."""
        if self.run:
            return self.scenario
        return replace(
            self.scenario, filled_tokens=min(self.scenario.filled_tokens, WARM_UP_TOKENS)
        )

    @property
    def phase(self) -> str:
        if not self.run:
            return autopsy.FIRST_REQUEST
        filled = self.scenario.filled_tokens
        return f"run {self.run} of {self.runs}" + (f" at {filled} tokens" if filled else "")


class _Progress:
    """How far the whole bench is, in requests; a request half answered counts half."""

    def __init__(self, bench: Started, at: At) -> None:
        self._bench = bench
        self._at = at
        self._first: tuple[float, int] | None = None

    def tell(self, tokens: int) -> None:
        plan, at = self._bench.plan, self._at
        count = sum(1 for _ in schedule(plan))
        boots, boot = max(plan.boots, at.boot), at.boot - 1
        if plan.arm:
            boots, boot = boots * len(ARMS), boot * len(ARMS) + ARMS.index(plan.arm)
        share = min(1.0, tokens / at.scenario.tokens)
        before = boot * count + at.position
        what = f"run {at.run} of {plan.runs}" if at.run else "warm-up"
        depth = f" at {at.asked.filled_tokens} tokens" if at.scenario.filled_tokens else ""
        arm = f"{plan.arm}, " if plan.arm else ""
        words = [f"{arm}boot {at.boot} of {max(plan.boots, at.boot)}, {what}{depth}"]
        words += self._speed(tokens)
        if at.position + share > 0:
            each = (time.monotonic() - self._bench.began_at) / (at.position + share)
            words.append(f"about {each * (boots * count - before - share):.0f} s left")
        self._bench.control.report(
            "measure",
            done=round(before + share, 2),
            total=boots * count,
            unit="requests",
            note=", ".join(words),
        )

    def _speed(self, tokens: int) -> list[str]:
        """Tokens a second since the first were heard of."""
        now = time.monotonic()
        if self._first is None:
            self._first = (now, tokens) if tokens else None
            return []
        began, first = self._first
        return [f"{(tokens - first) / (now - began):.1f} t/s"] if tokens > first else []


def one_run(bench: Started, at: At) -> tuple[Measurement, bool]:
    """The request's numbers, and whether its answer came at a steady pace."""
    plan, place, server, scenario = bench.plan, bench.place, bench.server, at.asked
    progress = _Progress(bench, at)
    progress.tell(0)
    check_alive(server, place, plan.engine, phase=at.phase)
    answer = ask(
        server.client,
        plan.engine.request(
            scenario, run=at.sent, alias=server.alias, filling=_filling(bench, scenario, at.sent)
        ),
        tokens=scenario.tokens,
        phase=at.phase,
        process=server.running,
        log_text=lambda: autopsy.read_log_text(place.log, offset=server.offset),
        rules=plan.engine.FAILURES,
        patience=bench.patience,
        control=bench.control,
        on_tokens=progress.tell,
    )
    measurement = plan.engine.measure(
        answer.arrivals,
        scenario=scenario,
        run=at.run or at.again,
        warmup=at.run == 0,
        wall_seconds=answer.wall_seconds,
        alias=server.alias,
    )
    texts = [text_of(arrival.event) for arrival in answer.arrivals]
    steady = is_steady(gaps_ms(answer.arrivals, texts))
    return replace(measurement, scenario=at.scenario.key), steady


def _filling(bench: Started, scenario: Scenario, run: int) -> tuple[int, ...]:
    """The tokens a filled scenario begins with; the same for every engine of one vocabulary."""

    def tokenise(text: str) -> Sequence[int] | None:
        bench.control.check()
        return tokens_in(bench.server.client.ask_json("/tokenize", {"content": text}))

    if not scenario.filled_tokens:
        return ()
    return filled(scenario.filled_tokens, scenario.salt(run), tokenise)


def meant(plan: Plan, measurement: Measurement) -> Measurement:
    """A twin's text means nothing, good or bad, and its speed never feeds a verdict."""
    if plan.is_twin and measurement.validity in (Validity.OK, Validity.BROKEN_OUTPUT):
        return replace(
            measurement, validity=Validity.TWIN, reason="random weights of a real model's shape"
        )
    return measurement
