"""Waits until a started server is ready and proves that it is ours; it measures nothing."""

from __future__ import annotations

import time
from dataclasses import dataclass
from pathlib import Path

from jobs.control import Control
from jobs.engines.base import Engine
from jobs.errors import JobFailure
from jobs.model import Blame
from workers import autopsy
from workers.answers import POLL_SECONDS, Patience
from workers.client import EngineClient
from workers.plan import Place
from workers.running import Running
from workers.usage import Usage

MEMORY_STEP_BYTES = 4 * 2**20
LOG_STEP_BYTES = 2**20


@dataclass(frozen=True)
class Server:
    """One started server as the requests see it."""

    running: Running
    client: EngineClient
    usage: Usage
    alias: str
    offset: int


def wait_ready(
    server: Server, place: Place, engine: Engine, *, control: Control, patience: Patience
) -> None:
    """Wait while the server makes progress: its log or its memory grows."""
    began_at = progress_at = time.monotonic()
    position, highest_bytes = server.offset, 0
    while not server.client.healthy():
        control.report("load", done=server.usage.memory_bytes, unit="B")
        check_alive(server, place, engine, phase=autopsy.LOAD)
        now = time.monotonic()
        spoke, position = _spoke(place.log, position)
        if spoke or server.usage.memory_bytes > highest_bytes + MEMORY_STEP_BYTES:
            highest_bytes = max(highest_bytes, server.usage.memory_bytes)
            progress_at = now
        if now - progress_at > patience.stall_seconds:
            raise _load_failure("stalled", f"no log line or memory for {now - progress_at:.0f} s")
        if now - began_at > patience.load_seconds:
            raise _load_failure("load_timeout", f"not ready after {now - began_at:.0f} s")
        control.wait(POLL_SECONDS)
    control.check()
    check_alive(server, place, engine, phase=autopsy.LOAD)


def _spoke(log: Path, position: int) -> tuple[bool, int]:
    """Whether whole lines came that are not echoes of our questions, and how far was read."""
    with log.open("rb") as file:
        file.seek(position)
        grown = file.read(LOG_STEP_BYTES)
    whole = grown[: grown.rfind(b"\n") + 1] or (grown if len(grown) == LOG_STEP_BYTES else b"")
    lines = whole.split(b"\n")
    return any(line.strip() and b"/health" not in line for line in lines), position + len(whole)


def _load_failure(failure_class: str, words: str) -> JobFailure:
    return JobFailure(
        f"the server never became ready: {words}",
        failure_class=failure_class,
        blame=Blame.ENGINE,
        phase=autopsy.LOAD,
        advice="Look at the end of the log for what it was doing.",
    )


def check_alive(server: Server, place: Place, engine: Engine, *, phase: str) -> None:
    if server.running.failure:
        raise server.running.failure
    exit_code = server.running.poll()
    if exit_code is not None:
        text = autopsy.read_log_text(place.log, offset=server.offset)
        raise autopsy.crash(exit_code, phase=phase, log_text=text, rules=engine.FAILURES)


def prove_listener(server: Server) -> bool:
    """True, or the failure that another process answers on our socket."""
    pid = server.client.listener_pid()
    if pid is None or not server.running.owns(pid):
        raise JobFailure(
            "the process that listens on the socket is not the one this job started",
            failure_class="wrong_server",
            blame=Blame.INFRASTRUCTURE,
            phase=autopsy.LOAD,
            advice="Look for leftovers of earlier jobs on the worker, then retry the job.",
        )
    return True
