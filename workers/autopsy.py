"""Names why a server failed from its exit code, its log and the phase it was in; starts nothing."""

from __future__ import annotations

import re
import signal
from collections.abc import Sequence
from pathlib import Path

from jobs.dialect import failure_rule, wire
from jobs.engines.base import Diagnosis, classify
from jobs.errors import UNKNOWN, JobFailure
from jobs.model import Blame, FailureRule

LOG_HEAD_BYTES = 4 * 2**20
LOG_TAIL_BYTES = 2**20
SHOWN_LINE = 300
KEPT_LINES = 50
LOAD = failure_rule.LOAD
FIRST_REQUEST = "first request"
DEPTH = re.compile(r" at \d+ tokens")
STAGES = (
    (re.compile(r"failed to load draft model, '"), failure_rule.LOAD_DRAFTER),
    (re.compile(r"failed to load multimodal model, '"), failure_rule.LOAD_PROJECTOR),
    (re.compile(r"failed to load model, '"), failure_rule.LOAD_TARGET),
)
"""Which of several files a server was loading; it says so after the line that says why."""


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
    """The failure of a server that ended by itself; `unknown` where no rule knows why."""
    ending = exit_words(exit_code)
    found = classify(log_text, rules)
    if found:
        name, blame, advice = found.rule.name, found.rule.blame, found.rule.advice
        says = f": {found.line[:SHOWN_LINE]}"
    else:
        name, blame, advice = _unexplained(_status(exit_code), phase)
        says = _last_line(log_text)
    return JobFailure(
        f"the server ended in phase {phase} with {ending}{says}",
        failure_class=name,
        blame=blame,
        phase=_stage(phase, found, log_text),
        advice=advice,
        ending=ending,
        lines=last_lines(log_text),
    )


def _unexplained(status: int, phase: str) -> tuple[str, Blame, str]:
    """A signal is a crash, named by where it came; any other ending without a word is unknown."""
    if status == 128 + signal.SIGKILL:
        advice = "Look for the kernel's out-of-memory killer and the job's memory limit."
        return "killed", Blame.INFRASTRUCTURE, advice
    if status <= 128 or status > 128 + signal.NSIG:
        return UNKNOWN, Blame.ENGINE, "Read the end of the log; no known failure explains it."
    if phase == LOAD:
        name = "crash_load"
    elif phase == FIRST_REQUEST:
        name = "crash_first_request"
    else:
        name = "crash_depth" if DEPTH.search(phase) else "crash_request"
    return name, Blame.ENGINE, "Report it to the fork with the command of this job and its log."


def _stage(phase: str, found: Diagnosis | None, log_text: str) -> str:
    """The phase as we saw it, or the part of the load that the log names."""
    if phase != LOAD or found is None:
        return phase
    for pattern, stage in STAGES:
        if pattern.search(log_text):
            return stage
    return next((each for each in failure_rule.BOOTING if each in found.rule.phases), phase)


def refusal(
    status: int,
    body: str,
    *,
    phase: str,
    rules: Sequence[FailureRule],
    log_text: str = "",
) -> JobFailure:
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
        ending=f"HTTP {status}",
        lines=last_lines(log_text) or last_lines(body),
    )


def last_lines(text: str) -> tuple[str, ...]:
    """The end of a log, each line cut to a length that can be shown."""
    return tuple(line[:SHOWN_LINE] for line in text.splitlines()[-KEPT_LINES:])


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
