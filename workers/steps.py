"""Runs one step to its end under all its limits; it names the limit, never the deeper cause."""

from __future__ import annotations

import signal
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import psutil

from jobs.control import Control
from jobs.errors import JobFailure, disk_full
from jobs.model import Blame, Step
from workers.disk_use import DiskUse
from workers.running import Running
from workers.sandbox import Limits, Mount, Sandbox

POLL_SECONDS = 0.1
CENSUS_SECONDS = 1.0
GRACE_SECONDS = 2.0
LINE_BYTES = 16384
OUR_LIMITS = {
    signal.SIGXFSZ: ("file_limit", "It wrote a file larger than the limit for one file."),
    signal.SIGXCPU: ("cpu_limit", "It used more processor time than the limit allows."),
}


class StepFailed(JobFailure):
    """A step failed"""

    def __init__(
        self,
        detail: str,
        *,
        failure_class: str,
        step: str,
        log: Path,
        advice: str,
        returned: int | None = None,
        signal_number: int | None = None,
    ) -> None:
        self.log = log
        self.returned = returned
        self.signal_number = signal_number
        super().__init__(
            f"{step} {detail}",
            failure_class=failure_class,
            blame=Blame.ENGINE,
            phase=step,
            advice=advice,
        )


def run_step(
    sandbox: Sandbox,
    step: Step,
    mounts: Sequence[Mount],
    *,
    log: Path,
    limits: Limits,
    control: Control,
    marker: str,
    on_line: Callable[[str], None] | None = None,
) -> None:
    """Run `step` until it ends well; its whole tree is gone when this returns or raises.

    Raises `StepFailed` with class `exit`, `timeout`, `silent`, `memory_limit`, `process_limit`,
    `disk_limit`, `file_limit` or `cpu_limit`, `JobFailure` with `output_limit`, `disk_full` or
    `start_failed`, and `Stopped`.
    `on_line` gets each line of output from this thread.
    """
    control.check()
    lines = LogLines(log)
    running = sandbox.start(step, mounts, log=log, limits=limits, marker=marker)
    writable = [mount.host for mount in mounts if mount.writable]
    try:
        code = _watch(running, step, limits, control, DiskUse(writable), lines, on_line)
        struck = _struck(running, limits, ended=True) if code else None
        fault = running.start_fault(code)
    except BaseException:
        running.stop(GRACE_SECONDS)
        raise
    running.stop()
    _pass_on(lines, on_line, last=True)
    if running.failure:
        raise running.failure
    if fault:
        raise fault
    if struck:
        raise struck.failure(step, log)
    if code != 0:
        raise _bad_exit(code, step, log)


def _watch(
    running: Running,
    step: Step,
    limits: Limits,
    control: Control,
    disk: DiskUse,
    lines: LogLines,
    on_line: Callable[[str], None] | None,
) -> int:
    census_at = running.started_at
    while (code := running.poll()) is None:
        control.wait(POLL_SECONDS)
        _pass_on(lines, on_line)
        now = time.monotonic()
        if running.failure:
            raise running.failure
        if over := _late(running, step, now) or _struck(running, limits):
            raise over.failure(step, running.log)
        if now - census_at > CENSUS_SECONDS:
            census_at = now
            _take_census(running, step, limits, disk)
    return code


def _take_census(running: Running, step: Step, limits: Limits, disk: DiskUse) -> None:
    if over := _too_many(running.members(), limits):
        raise over.failure(step, running.log)
    if disk.free_bytes() < limits.min_free_bytes:
        left = f"less than {limits.min_free_bytes / 2**30:.1f} GiB of disk is left"
        raise disk_full(left, phase=step.name)
    if added := disk.over(limits.disk_bytes, limits.disk_entries):
        raise _Over(
            "disk_limit",
            f"left {added} in its folders",
            "Look for a loop that writes; a real build of an engine needs far less.",
        ).failure(step, running.log)


@dataclass(frozen=True)
class _Over:
    """A limit that a step has passed."""

    failure_class: str
    detail: str
    advice: str

    def failure(self, step: Step, log: Path) -> StepFailed:
        return StepFailed(
            self.detail,
            failure_class=self.failure_class,
            step=step.name,
            log=log,
            advice=self.advice,
        )


def _late(running: Running, step: Step, now: float) -> _Over | None:
    if now - running.started_at > step.timeout_seconds:
        return _Over(
            "timeout",
            f"took longer than {step.timeout_seconds:g} s",
            "Read the end of the log; allow more time only if it still made progress.",
        )
    if now - running.output_at > step.silence_seconds:
        return _Over(
            "silent",
            f"said nothing for {step.silence_seconds:g} s",
            "It hangs or waits for input; the last line of the log says where.",
        )
    return None


def _too_many(tree: Sequence[psutil.Process], limits: Limits) -> _Over | None:
    if len(tree) > limits.processes:
        return _process_limit(limits)
    if limits.memory_bytes is not None and _own_memory(tree) > limits.memory_bytes:
        return _memory_limit(limits.memory_bytes)
    return None


def _struck(running: Running, limits: Limits, *, ended: bool = False) -> _Over | None:
    """The bound that the kernel enforced on the tree."""
    struck = running.struck(ended=ended)
    if struck == "processes":
        return _process_limit(limits)
    return _memory_limit(limits.memory_bytes or 0) if struck == "memory" else None


def _process_limit(limits: Limits) -> _Over:
    return _Over(
        "process_limit",
        f"started more than {limits.processes} processes",
        "Build with fewer jobs, or read the log for what multiplies.",
    )


def _memory_limit(memory_bytes: int) -> _Over:
    return _Over(
        "memory_limit",
        f"used more than {memory_bytes / 2**30:.1f} GiB of memory",
        "Build with fewer jobs, or choose a smaller model or context.",
    )


def _own_memory(tree: Sequence[psutil.Process]) -> int:
    """Resident memory that is not a mapped file, so that mapped weights do not count."""
    total = 0
    for process in tree:
        try:
            memory = process.memory_info()
        except psutil.NoSuchProcess:
            continue
        total += max(0, memory.rss - memory.shared)
    return total


def _bad_exit(code: int, step: Step, log: Path) -> StepFailed:
    if code > 0:
        return StepFailed(
            f"ended with exit code {code}",
            failure_class="exit",
            step=step.name,
            log=log,
            returned=code,
            advice="Read the end of the log.",
        )
    failure_class, advice = OUR_LIMITS.get(
        signal.Signals(-code), ("exit", "Read the end of the log.")
    )
    return StepFailed(
        f"was ended by {signal.Signals(-code).name}",
        failure_class=failure_class,
        step=step.name,
        log=log,
        signal_number=-code,
        advice=advice,
    )


def _pass_on(lines: LogLines, on_line: Callable[[str], None] | None, *, last: bool = False) -> None:
    if on_line is not None:
        for line in lines.new(last=last):
            on_line(line)


class LogLines:
    """New lines of a growing log, printable text only; starts at the log's present end."""

    def __init__(self, log: Path) -> None:
        self._log = log
        self._offset = log.stat().st_size if log.exists() else 0
        self._rest = b""

    def new(self, *, last: bool = False) -> Iterator[str]:
        """The lines since last time; a carriage return ends one too, an endless one is cut.

        `last` gives what no line end follows as well.
        """
        try:
            with self._log.open("rb") as file:
                file.seek(self._offset)
                data = file.read()
        except FileNotFoundError:
            return
        self._offset += len(data)
        pieces = (self._rest + data).replace(b"\r", b"\n").split(b"\n")
        self._rest = pieces.pop()
        if last or len(self._rest) > LINE_BYTES:
            pieces.append(self._rest)
            self._rest = b""
        for piece in pieces:
            text = piece[:LINE_BYTES].decode(errors="replace")
            if text:
                yield "".join(c for c in text if c.isprintable() or c == "\t")
