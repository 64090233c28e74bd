"""Names why a server failed from its exit code, its log and the phase it was in; starts nothing."""

from __future__ import annotations

import signal
from collections.abc import Sequence
from pathlib import Path

from jobs.dialect import wire
from jobs.engines.base import classify
from jobs.errors import JobFailure
from jobs.model import Blame, FailureRule

LOG_HEAD_BYTES = 4 * 2**20
LOG_TAIL_BYTES = 2**20
SHOWN_LINE = 300
LOAD = "load"
FIRST_REQUEST = "first request"


def read_log_text(log: Path, *, offset: int = 0) -> str:
    """What a boot wrote from `offset` on: the head and the tail where it wrote too much."""
    with log.open("rb") as file:
        end = file.seek(0, 2)
        file.seek(min(offset, end))
        text = file.read(LOG_HEAD_BYTES)
        if file.tell() < end:
            file.seek(max(file.tell(), end - LOG_TAIL_BYTES))
            text += b"\n" + file.read()
    return wire.plain(text.decode("utf-8", "replace"))


def crash(exit_code: int, *, phase: str, log_text: str, rules: Sequence[FailureRule]) -> JobFailure:
    """The failure of a server that ended by itself."""
    status = exit_words(exit_code)
    found = classify(log_text, rules)
    if found:
        return JobFailure(
            f"the server ended in phase {phase} with {status}: {found.line[:SHOWN_LINE]}",
            failure_class=found.rule.name,
            blame=found.rule.blame,
            phase=phase,
            advice=found.rule.advice,
        )
    if _status(exit_code) == 128 + signal.SIGKILL:
        return JobFailure(
            f"the server was killed in phase {phase} with {status}",
            failure_class="killed",
            blame=Blame.INFRASTRUCTURE,
            phase=phase,
            advice="Look for the kernel's out-of-memory killer and the job's memory limit.",
        )
    names = {LOAD: "crash_load", FIRST_REQUEST: "crash_first_request"}
    return JobFailure(
        f"the server ended in phase {phase} with {status}{_last_line(log_text)}",
        failure_class=names.get(phase, "crash_request"),
        blame=Blame.ENGINE,
        phase=phase,
        advice="Read the end of the log; no known failure explains it.",
    )


def refusal(status: int, body: str, *, phase: str, rules: Sequence[FailureRule]) -> JobFailure:
    """The failure of a server that answered with an error instead of a stream."""
    found = classify(body, rules)
    line = " ".join(body.split())[:SHOWN_LINE] or "no words"
    if found:
        failure_class, blame, advice = found.rule.name, found.rule.blame, found.rule.advice
    else:
        failure_class = f"http_{status}" if status != 200 else "error_event"
        blame = Blame.CONFIGURATION if 400 <= status < 500 else Blame.ENGINE
        advice = "Read the server's words and the end of the log."
    return JobFailure(
        f"the server refused phase {phase} with HTTP {status}: {line}",
        failure_class=failure_class,
        blame=blame,
        phase=phase,
        advice=advice,
    )


def exit_words(exit_code: int) -> str:
    """`exit code 139 (SIGSEGV)`, whichever way the code was reported."""
    status = _status(exit_code)
    try:
        return f"exit code {status} ({signal.Signals(status - 128).name})"
    except ValueError:
        return f"exit code {status}"


def _status(exit_code: int) -> int:
    return 128 - exit_code if exit_code < 0 else exit_code


def _last_line(log_text: str) -> str:
    lines = [line.strip() for line in log_text.splitlines() if line.strip()]
    return f"; its last words: {lines[-1][:SHOWN_LINE]}" if lines else "; it wrote nothing"
