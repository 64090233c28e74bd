"""Turns the events of one streamed answer into a Measurement; it never trusts and never raises."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from jobs.dialect import wire
from jobs.dialect.events import (
    Text,
    echo_of,
    finish_reason_of,
    first_ms,
    gaps_ms,
    quantile,
    text_of,
)
from jobs.dialect.output import brokenness, sanity
from jobs.model import Arrival, Measurement, Validity
from jobs.scenarios import Scenario

RATE_TOLERANCE = 0.01  # between a stated rate and count divided by time
LONGEST_DRAFT = 64  # tokens a server may count past the asked length when a draft was accepted
CLOCK_SLACK_MS = 50.0  # start, transport and scheduling outside the server's own clock
ARRIVAL_SLACK_MS = 250.0  # our own reader may be late on a busy machine
CLOCK_FACTOR = 1.5  # between the server's decode time and the span in which its text arrived
TEXT_HEAD = 200
INLINE_THOUGHT = re.compile(r"\s*<think>(.*?)(?:</think>|\Z)", re.DOTALL)


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
        reasoning=reasoning_in(texts),
        first_ms=first_ms(arrivals, [text.whole for text in texts]),
        last_ms=first_ms(arrivals[::-1], [text.whole for text in texts[::-1]]),
        wall_ms=wall_seconds * 1000,
        echo=echo_of(events, alias),
    )
    faults = list(_faults(read, scenario=scenario, alias=alias))
    gaps = gaps_ms(arrivals, texts)
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
        prefill_tps=_prefill_rate(read, scenario),
        wall_tps=_rate(read.predicted_n, read.wall_ms),
        arrival_tps=_arrival_rate(read),
        ttft_ms=read.first_ms,
        ttft_content_ms=first_ms(arrivals, [text.content for text in texts]),
        inter_token_p50_ms=quantile(gaps, 0.5),
        inter_token_p99_ms=quantile(gaps, 0.99),
        sanity=sanity(whole),
        draft_n=wire.count(timings.get("draft_n")),
        draft_accepted_n=wire.count(timings.get("draft_n_accepted")),
        finish_reason=finish_reason_of(events),
        model_echo=wire.shown(read.echo),
        text_sha256=hashlib.sha256(wire.plain(whole).encode()).hexdigest() if whole else None,
        text_head=wire.plain(whole[:TEXT_HEAD]),
        source="timings" if timings else "wall",
        timings=wire.storable(timings),
    )


def reasoning_in(texts: Sequence[Text]) -> int:
    """Characters of thought, whether they came apart or in the text between their tags."""
    apart = sum(len(text.reasoning.strip()) for text in texts)
    inside = INLINE_THOUGHT.match("".join(text.content for text in texts))
    return apart + (len(inside[1].strip()) if inside else 0)


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
    reasoning: int
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
    yield from said_wrong(read.text, read.reasoning, scenario)
    if read.predicted_n is not None and read.predicted_n < scenario.tokens:
        yield Validity.TOO_SHORT, f"{read.predicted_n} of {scenario.tokens} tokens"
    depth = (read.prompt_n or 0) + (read.cache_n or 0)
    if scenario.filled_tokens and depth < scenario.filled_tokens:
        yield Validity.CONFIG_MISMATCH, f"{depth} of {scenario.filled_tokens} tokens filled"
    if read.cache_n:
        yield Validity.CACHED, f"{read.cache_n} prompt tokens came from the cache"


def said_wrong(text: str, reasoning: int, scenario: Scenario) -> Iterator[tuple[Validity, str]]:
    """What the text itself says against a run; `reasoning` counts characters of thought."""
    broken = brokenness(text)
    if broken:
        yield Validity.BROKEN_OUTPUT, broken
    elif scenario.names and not re.search(rf"\b{re.escape(scenario.names)}\b", text, re.IGNORECASE):
        yield Validity.BROKEN_OUTPUT, f"the answer does not name {scenario.names!r}"
    if scenario.endpoint != "chat":
        return
    if scenario.thinking and not reasoning:
        yield Validity.CONFIG_MISMATCH, "thinking was switched on and none came"
    if reasoning and not scenario.thinking:
        yield (
            Validity.CONFIG_MISMATCH,
            f"thinking was switched off and {reasoning} characters of it came",
        )


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


def _prefill_rate(read: _Read, scenario: Scenario) -> float | None:
    """None where a cache helped, and for pictures: servers count one as a token, or not at all."""
    if read.cache_n != 0 or scenario.picture:
        return None
    return _rate(read.prompt_n, read.prompt_ms)


def _arrival_rate(read: _Read) -> float | None:
    """Our own clock between first and last text, over the tokens after the first."""
    if read.predicted_n is None or read.first_ms is None or read.last_ms is None:
        return None
    return _rate(max(read.predicted_n - 1, 0), read.last_ms - read.first_ms)
