"""One measured request from sending to its last event; gives up on silence, flood and cancel."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Protocol

from jobs.control import Control
from jobs.dialect.events import error_of, text_of, tokens_so_far
from jobs.errors import JobFailure
from jobs.model import Arrival, Blame, FailureRule, Request
from workers import autopsy
from workers.client import EngineClient
from workers.event_stream import End, Stream, StreamLimits

POLL_SECONDS = 0.1
REPORT_SECONDS = 0.5
DEATH_SECONDS = 2.0
EVENTS_PER_TOKEN = 4
SPARE_EVENTS = 1024
BYTES_PER_TOKEN = 8192
SPARE_BYTES = 4 * 2**20


@dataclass(frozen=True)
class Patience:
    """How long each silence may last, in seconds, before a server is given up."""

    stall_seconds: float = 120.0
    load_seconds: float = 3600.0
    first_token_seconds: float = 1800.0
    token_stall_seconds: float = 60.0
    request_seconds: float = 3600.0
    grace_seconds: float = 5.0
    release_seconds: float = 30.0


class Process(Protocol):
    """What a request must know of the server's process."""

    def poll(self) -> int | None:
        """The exit code, or None while it lives."""


@dataclass(frozen=True)
class Answer:
    """All events of one request and how long it took."""

    arrivals: tuple[Arrival, ...]
    wall_seconds: float


def limits_for(tokens: int) -> StreamLimits:
    """Far more than an honest answer of `tokens` needs."""
    return StreamLimits(
        events=tokens * EVENTS_PER_TOKEN + SPARE_EVENTS,
        total_bytes=tokens * BYTES_PER_TOKEN + SPARE_BYTES,
    )


def ask(
    client: EngineClient,
    request: Request,
    *,
    tokens: int,
    phase: str,
    process: Process,
    log_text: Callable[[], str],
    rules: Sequence[FailureRule],
    patience: Patience,
    control: Control,
    on_tokens: Callable[[int], None] = lambda _tokens: None,
) -> Answer:
    """The answer to one request. Raises JobFailure, or Stopped within a moment of a cancel.

    `on_tokens` hears about once a second how many tokens have come.

    A raise leaves the stream open: the caller ends the server, which ends the stream.
    """
    stream = client.stream(request, limits_for(tokens))
    arrivals, end = _collect(
        stream,
        phase=phase,
        process=process,
        patience=patience,
        control=control,
        on_tokens=on_tokens,
    )
    if end is not None and end.flooded:
        raise JobFailure(
            f"the answer of phase {phase} had no end: {len(arrivals)} events were read",
            failure_class="output_flood",
            blame=Blame.ENGINE,
            phase=phase,
            advice="Look at the end of the log; the server ignores the asked length.",
        )
    if end is not None and end.status not in (0, 200):
        raise autopsy.refusal(end.status, end.body, phase=phase, rules=rules, log_text=log_text())
    for arrival in arrivals:
        message = error_of(arrival.event)
        if message is not None:
            raise autopsy.refusal(200, message, phase=phase, rules=rules, log_text=log_text())
    if end is None or end.fault or not end.finished:
        exit_code = _exit_code(process, control)
        if exit_code is not None:
            raise autopsy.crash(exit_code, phase=phase, log_text=log_text(), rules=rules)
    if end is None or end.fault:
        raise JobFailure(
            f"the connection broke in phase {phase}: {end.fault if end else 'no end'}",
            failure_class="connection_lost",
            blame=Blame.ENGINE,
            phase=phase,
            advice="The server still runs; look at the end of its log.",
            lines=autopsy.last_lines(log_text()),
        )
    return Answer(tuple(arrivals), end.seconds)


def _collect(
    stream: Stream,
    *,
    phase: str,
    process: Process,
    patience: Patience,
    control: Control,
    on_tokens: Callable[[int], None],
) -> tuple[list[Arrival], End | None]:
    arrivals: list[Arrival] = []
    token = 0
    began_at = heard_at = time.monotonic()
    reported_at = 0.0
    while True:
        control.check()
        came, end = stream.take(timeout_seconds=POLL_SECONDS)
        now = time.monotonic()
        arrivals += came
        if end is not None:
            return arrivals, end
        for item in came:
            heard_at = now
            if text_of(item.event).whole:
                token = tokens_so_far(item.event) or token + 1
        if not came and process.poll() is not None:
            return arrivals, None
        if now - reported_at > REPORT_SECONDS:
            on_tokens(token)
            reported_at = now
        allowed = patience.token_stall_seconds if token else patience.first_token_seconds
        if now - heard_at > allowed or now - began_at > patience.request_seconds:
            raise JobFailure(
                f"hung at token {token} in phase {phase}",
                failure_class="hung",
                blame=Blame.ENGINE,
                phase=phase,
                advice="The server lives but generates nothing; look at the end of its log.",
            )


def _exit_code(process: Process, control: Control) -> int | None:
    """The exit code of a server whose connection ended; it may take a moment to be known."""
    deadline = time.monotonic() + DEATH_SECONDS
    while (code := process.poll()) is None and time.monotonic() < deadline:
        control.wait(POLL_SECONDS / 2)
    return code
