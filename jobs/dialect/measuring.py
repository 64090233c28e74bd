"""Turns the events of one streamed answer into a Measurement; it never trusts and never raises."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from jobs.dialect import wire
from jobs.dialect.output import brokenness
from jobs.model import Arrival, Measurement, Validity
from jobs.scenarios import Scenario

RATE_TOLERANCE = 0.01  # between a stated rate and count divided by time
LONGEST_DRAFT = 64  # tokens a server may count past the asked length when a draft was accepted
CLOCK_SLACK_MS = 50.0  # start, transport and scheduling outside the server's own clock
ARRIVAL_SLACK_MS = 250.0  # our own reader may be late on a busy machine
CLOCK_FACTOR = 1.5  # between the server's decode time and the span in which its text arrived
TEXT_HEAD = 200


@dataclass(frozen=True)
class Text:
    """What one event adds to the answer, by kind."""

    reasoning: str = ""
    content: str = ""
    tool: str = ""

    @property
    def whole(self) -> str:
        return self.reasoning + self.content + self.tool


def text_of(event: Mapping[str, Any]) -> Text:
    """The text one event carries, in either endpoint's shape."""
    choices = wire.sequence(event.get("choices"))
    if not choices:
        return Text(content=wire.text(event.get("content")))
    choice = wire.mapping(choices[0])
    delta = wire.mapping(choice.get("delta"))
    calls = (
        wire.mapping(wire.mapping(call).get("function"))
        for call in wire.sequence(delta.get("tool_calls"))
    )
    return Text(
        reasoning=wire.text(delta.get("reasoning_content")) or wire.text(delta.get("reasoning")),
        content=wire.text(delta.get("content")) or wire.text(choice.get("text")),
        tool="".join(wire.text(c.get("name")) + wire.text(c.get("arguments")) for c in calls),
    )


def error_of(event: Mapping[str, Any]) -> str | None:
    """The message of an error the server sent, or None."""
    error = event.get("error")
    if error is None:
        return None
    return wire.shown(wire.mapping(error).get("message")) or wire.shown(error) or "no message"


def tokens_so_far(event: Mapping[str, Any]) -> int | None:
    """The token count an unfinished `/completion` stream states in each event."""
    return wire.count(event.get("tokens_predicted"))


def measure(
    arrivals: Sequence[Arrival],
    *,
    scenario: Scenario,
    run: int,
    warmup: bool,
    wall_seconds: float,
    alias: str,
) -> Measurement:
    """The numbers of one run; every doubt is a reason and the gravest of them the validity."""
    events = [wire.mapping(arrival.event) for arrival in arrivals]
    last = events[-1] if events else {}
    timings = wire.mapping(last.get("timings"))
    texts = [text_of(event) for event in events]
    whole = "".join(text.whole for text in texts)
    read = _Read(
        timings=timings,
        has_timings=bool(timings),
        predicted_n=wire.count(timings.get("predicted_n")),
        predicted_ms=wire.number(timings.get("predicted_ms")),
        prompt_n=wire.count(timings.get("prompt_n")),
        prompt_ms=wire.number(timings.get("prompt_ms")),
        cache_n=wire.count(timings.get("cache_n")),
        text=whole,
        first_ms=_first_ms(arrivals, [text.whole for text in texts]),
        last_ms=_first_ms(arrivals[::-1], [text.whole for text in texts[::-1]]),
        wall_ms=wall_seconds * 1000,
        echo=_echo(events, alias),
    )
    faults = list(_faults(read, scenario=scenario, alias=alias))
    return Measurement(
        run=run,
        warmup=warmup,
        validity=faults[0][0] if faults else Validity.OK,
        reason="; ".join(reason for _, reason in faults),
        predicted_n=read.predicted_n,
        predicted_ms=read.predicted_ms,
        prompt_n=read.prompt_n,
        prompt_ms=read.prompt_ms,
        cache_n=read.cache_n,
        decode_tps=_rate(read.predicted_n, read.predicted_ms),
        prefill_tps=_rate(read.prompt_n, read.prompt_ms) if read.cache_n == 0 else None,
        wall_tps=_rate(read.predicted_n, read.wall_ms),
        arrival_tps=_arrival_rate(read),
        ttft_ms=read.first_ms,
        ttft_content_ms=_first_ms(arrivals, [text.content for text in texts]),
        draft_n=wire.count(timings.get("draft_n")),
        draft_accepted_n=wire.count(timings.get("draft_n_accepted")),
        finish_reason=_finish_reason(events),
        model_echo=wire.shown(read.echo),
        text_sha256=hashlib.sha256(wire.plain(whole).encode()).hexdigest() if whole else None,
        text_head=wire.plain(whole[:TEXT_HEAD]),
        source="timings" if timings else "wall",
        timings=wire.storable(timings),
    )


@dataclass(frozen=True)
class _Read:
    timings: Mapping[str, Any]
    has_timings: bool
    predicted_n: int | None
    predicted_ms: float | None
    prompt_n: int | None
    prompt_ms: float | None
    cache_n: int | None
    text: str
    first_ms: float | None
    last_ms: float | None
    wall_ms: float
    echo: str | None


def _faults(read: _Read, *, scenario: Scenario, alias: str) -> Iterator[tuple[Validity, str]]:
    """Every doubt about a run, the gravest kind first."""
    if read.echo is not None and read.echo != alias:
        yield Validity.WRONG_SERVER, f"the answer came from {wire.shown(read.echo, 60)!r}"
    if not read.predicted_n and not read.text:
        yield Validity.EMPTY, "no token came"
        return
    if not read.has_timings:
        yield Validity.INCONSISTENT, "the last event holds no timings"
        return
    for reason in _contradictions(read, scenario):
        yield Validity.INCONSISTENT, reason
    broken = brokenness(read.text)
    if broken:
        yield Validity.BROKEN_OUTPUT, broken
    if read.predicted_n is not None and read.predicted_n < scenario.tokens:
        yield Validity.TOO_SHORT, f"{read.predicted_n} of {scenario.tokens} tokens"
    depth = (read.prompt_n or 0) + (read.cache_n or 0)
    if scenario.filled_tokens and depth < scenario.filled_tokens:
        yield Validity.CONFIG_MISMATCH, f"{depth} of {scenario.filled_tokens} tokens filled"
    if read.cache_n:
        yield Validity.CACHED, f"{read.cache_n} prompt tokens came from the cache"


def _contradictions(read: _Read, scenario: Scenario) -> Iterator[str]:
    """Where the server's figures disagree with each other or with our own clock."""
    if read.predicted_n is None:
        yield "timings hold no usable predicted_n"
        return
    if not read.predicted_ms:
        yield f"{read.predicted_n} tokens in no usable time"
        return
    for words, amount, duration_ms, stated in (
        ("decode", read.predicted_n, read.predicted_ms, read.timings.get("predicted_per_second")),
        ("prefill", read.prompt_n, read.prompt_ms, read.timings.get("prompt_per_second")),
    ):
        rate, stated_rate = _rate(amount, duration_ms), wire.number(stated)
        if stated is not None and amount and rate and not _close(stated_rate, rate, amount):
            yield f"{words} rate stated as {stated_rate}, count and time give {rate:.2f} t/s"
    if read.predicted_n > scenario.tokens + LONGEST_DRAFT:
        yield f"{read.predicted_n} tokens counted, {scenario.tokens} asked"
    claimed_ms = read.predicted_ms + (read.prompt_ms or 0.0)
    if claimed_ms > read.wall_ms * (1 + RATE_TOLERANCE) + CLOCK_SLACK_MS:
        yield f"{claimed_ms:.0f} ms claimed inside {read.wall_ms:.0f} ms of wall time"
    if read.first_ms is not None and read.last_ms is not None:
        span_ms = read.last_ms - read.first_ms
        if span_ms > read.predicted_ms * CLOCK_FACTOR + ARRIVAL_SLACK_MS:
            yield f"{read.predicted_ms:.0f} ms claimed, the text took {span_ms:.0f} ms to arrive"


def _close(stated: float | None, rate: float, amount: int) -> bool:
    """Servers divide either all tokens or, since 2026, those after the first by the same time."""
    if stated is None:
        return False
    without_first = rate * (amount - 1) / amount
    low, high = without_first * (1 - RATE_TOLERANCE), rate * (1 + RATE_TOLERANCE)
    return low <= stated <= high


def _rate(amount: int | None, duration_ms: float | None) -> float | None:
    """Per second; None rather than a division by zero, and no rate of nothing."""
    return amount / duration_ms * 1000 if amount and duration_ms else None


def _arrival_rate(read: _Read) -> float | None:
    """Our own clock between first and last text, over the tokens after the first."""
    if read.predicted_n is None or read.first_ms is None or read.last_ms is None:
        return None
    return _rate(max(read.predicted_n - 1, 0), read.last_ms - read.first_ms)


def _first_ms(arrivals: Sequence[Arrival], texts: Sequence[str]) -> float | None:
    return next(
        (arrival.seconds * 1000 for arrival, text in zip(arrivals, texts, strict=True) if text),
        None,
    )


def _echo(events: Sequence[Mapping[str, Any]], alias: str) -> str | None:
    """The model name in the events; one that is not ours outweighs all that are."""
    names = [event["model"] for event in events if isinstance(event.get("model"), str)]
    return next((name for name in names if name != alias), names[-1] if names else None)


def _finish_reason(events: Sequence[Mapping[str, Any]]) -> str | None:
    for event in reversed(events):
        choices = wire.sequence(event.get("choices"))
        stated = wire.mapping(choices[0]).get("finish_reason") if choices else None
        stated = stated or event.get("stop_type")
        if isinstance(stated, str) and stated:
            return wire.shown(stated, 40)
    return None
