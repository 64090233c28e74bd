"""Requests and answers of servers without timings of their own: vLLM, and OpenAI's plain shape."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from jobs.dialect import wire
from jobs.dialect.asking import content
from jobs.dialect.events import (
    echo_of,
    finish_reason_of,
    first_ms,
    gaps_ms,
    quantile,
    text_of,
    usage_of,
)
from jobs.dialect.measuring import TEXT_HEAD, reasoning_in, said_wrong
from jobs.dialect.output import sanity
from jobs.errors import UsageError
from jobs.model import Arrival, Measurement, Request, Validity
from jobs.scenarios import Scenario

LEAST_PIECES = 8
"""Events with text that a wall-clock rate needs: a proxy that holds text back gives fewer."""


def request(
    scenario: Scenario,
    *,
    run: int,
    model: str,
    extended: bool,
    filling: Sequence[int] = (),
) -> Request:
    """The streamed request of one run; `extended` adds what vLLM knows beyond OpenAI's fields."""
    body: dict[str, Any] = {
        "model": model,
        "stream": True,
        "stream_options": {"include_usage": True},
        "max_tokens": scenario.tokens,
        "temperature": scenario.temperature,
        "top_p": scenario.top_p,
        "seed": scenario.seed + run,
        "presence_penalty": 0.0,
        "frequency_penalty": 0.0,
    }
    if extended:
        body |= {
            "min_tokens": scenario.tokens,
            "ignore_eos": True,
            "top_k": scenario.top_k,
            "min_p": scenario.min_p,
            "repetition_penalty": 1.0,
        }
    match scenario.endpoint:
        case "chat":
            body["messages"] = [{"role": "user", "content": content(scenario, run=run)}]
            if extended:
                body["chat_template_kwargs"] = {"enable_thinking": scenario.thinking}
            return Request("/v1/chat/completions", body)
        case "completion":
            return Request("/v1/completions", body | {"prompt": scenario.prompt_of(run)})
        case "filled" if filling:
            return Request("/v1/completions", body | {"prompt": list(filling)})
        case _:
            raise UsageError(
                f"scenario {scenario.name} fills a context to a known depth",
                advice="Measure it with a llama-server or vLLM, which tell how they tokenise.",
            )


def measure(
    arrivals: Sequence[Arrival],
    *,
    scenario: Scenario,
    run: int,
    warmup: bool,
    wall_seconds: float,
    alias: str,
) -> Measurement:
    """The numbers of one run: counts as the server states them, times by our own clock."""
    events = [wire.mapping(arrival.event) for arrival in arrivals]
    usage = usage_of(events)
    texts = [text_of(event) for event in events]
    whole = "".join(text.whole for text in texts)
    gaps = gaps_ms(arrivals, texts)
    predicted_n = wire.count(usage.get("completion_tokens"))
    first = first_ms(arrivals, [text.whole for text in texts])
    last = first_ms(arrivals[::-1], [text.whole for text in texts[::-1]])
    echo = echo_of(events, alias)
    cached = wire.count(wire.mapping(usage.get("prompt_tokens_details")).get("cached_tokens"))
    rate = _rate(predicted_n, first, last, pieces=len(gaps) + 1 if whole else 0)
    faults = list(
        _faults(
            scenario,
            echo=echo if echo != alias else None,
            predicted_n=predicted_n,
            pieces=sum(bool(text.whole) for text in texts),
            text=whole,
            reasoning=reasoning_in(texts),
            cached=cached,
            prompt_n=wire.count(usage.get("prompt_tokens")),
        )
    )
    return Measurement(
        run=run,
        warmup=warmup,
        validity=faults[0][0] if faults else Validity.OK,
        reason="; ".join(reason for _, reason in faults),
        predicted_n=predicted_n,
        prompt_n=wire.count(usage.get("prompt_tokens")),
        cache_n=cached,
        decode_tps=rate,
        wall_tps=predicted_n / wall_seconds if predicted_n and wall_seconds > 0 else None,
        arrival_tps=rate,
        ttft_ms=first,
        ttft_content_ms=first_ms(arrivals, [text.content for text in texts]),
        inter_token_p50_ms=quantile(gaps, 0.5),
        inter_token_p99_ms=quantile(gaps, 0.99),
        finish_reason=finish_reason_of(events),
        model_echo=wire.shown(echo),
        text_sha256=hashlib.sha256(wire.plain(whole).encode()).hexdigest() if whole else None,
        text_head=wire.plain(whole[:TEXT_HEAD]),
        sanity=sanity(whole),
        source="wall",
        timings=wire.storable(usage),
    )


def _rate(
    predicted_n: int | None, first: float | None, last: float | None, *, pieces: int
) -> float | None:
    """Tokens after the first over the time in which they came; None where too few pieces came."""
    if not predicted_n or first is None or last is None or last <= first:
        return None
    return (predicted_n - 1) / (last - first) * 1000 if pieces >= LEAST_PIECES else None


def _faults(
    scenario: Scenario,
    *,
    echo: str | None,
    predicted_n: int | None,
    pieces: int,
    text: str,
    reasoning: int,
    cached: int | None,
    prompt_n: int | None,
) -> Iterator[tuple[Validity, str]]:
    """Every doubt about a run, the gravest kind first."""
    if echo is not None:
        yield Validity.WRONG_SERVER, f"the answer came from {wire.shown(echo, 60)!r}"
    if not predicted_n and not text:
        yield Validity.EMPTY, "no token came"
        return
    if predicted_n is None:
        yield Validity.INCONSISTENT, "the server counts no tokens, and pieces of text are none"
    elif pieces > predicted_n:
        yield Validity.INCONSISTENT, f"{predicted_n} tokens counted, {pieces} pieces of text came"
    elif predicted_n > scenario.tokens:
        yield Validity.INCONSISTENT, f"{predicted_n} tokens counted, {scenario.tokens} asked"
    elif pieces < min(LEAST_PIECES, predicted_n):
        yield Validity.INCONSISTENT, f"{predicted_n} tokens came in {pieces} pieces: no time in it"
    yield from said_wrong(text, reasoning, scenario)
    if predicted_n is not None and predicted_n < scenario.tokens:
        yield Validity.TOO_SHORT, f"{predicted_n} of {scenario.tokens} tokens"
    if scenario.filled_tokens and (prompt_n or 0) < scenario.filled_tokens:
        yield Validity.CONFIG_MISMATCH, f"{prompt_n} of {scenario.filled_tokens} tokens filled"
    if cached:
        yield Validity.CACHED, f"{cached} prompt tokens came from the cache"


def tokens_in(answer: Any) -> Sequence[int] | None:
    """The token ids of a `/tokenize` answer, in either server's shape."""
    ids = wire.sequence(wire.mapping(answer).get("tokens"))
    counts = [wire.count(each) for each in ids]
    return [-1 if each is None else each for each in counts]


def models_in(answer: Any) -> Iterator[Mapping[str, Any]]:
    """The entries of a `/v1/models` answer that have a name."""
    for each in wire.sequence(wire.mapping(answer).get("data")):
        if isinstance(each, Mapping) and wire.text(each.get("id")):
            yield each
