"""How a running job hears that it must stop and says how far it is; it touches no database."""

from __future__ import annotations

import threading
import time
from typing import Any

from jobs.errors import Stopped

MOST_PHASES = 30


class Control:
    """Shared by the thread that works and the thread that keeps the lease."""

    def __init__(self) -> None:
        self._stop = threading.Event()
        self.reason = ""
        self.progress: dict[str, Any] = {}
        self._phases: list[tuple[str, float]] = []

    def ask(self, reason: str) -> None:
        """Ask the job to stop; the first reason stands."""
        if not self._stop.is_set():
            self.reason = reason
            self._stop.set()

    def check(self) -> None:
        """Raise `Stopped` where the job was asked to stop."""
        if self._stop.is_set():
            raise Stopped(self.reason)

    def wait(self, seconds: float) -> None:
        """Sleep, but wake up and raise `Stopped` at once when asked to stop."""
        self._stop.wait(seconds)
        self.check()

    def report(
        self,
        phase: str,
        *,
        done: float | None = None,
        total: float | None = None,
        unit: str = "",
        note: str = "",
    ) -> None:
        """Say what is being done and how far it is; `done` and `total` are in `unit`."""
        if not self._phases or self._phases[-1][0] != phase:
            self._phases.append((phase, time.monotonic()))
        self.progress = {
            "phase": phase,
            "done": done,
            "total": total,
            "unit": unit,
            "note": note,
            "phases": self.phases(),
        }

    def phases(self) -> list[dict[str, Any]]:
        """The newest phases in their order with the seconds each took; the present one so far."""
        ends = [*(started for _, started in self._phases[1:]), time.monotonic()]
        return [
            {"name": name, "seconds": round(end - started, 3)}
            for (name, started), end in zip(self._phases, ends, strict=True)
        ][-MOST_PHASES:]

    def ended(self) -> dict[str, Any]:
        """What stays to be told of it once the work is over."""
        return {**self.progress, "phases": self.phases()} if self.progress else {}
