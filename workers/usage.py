"""Watches what a tree of processes uses and what others take beside it; it judges nothing."""

from __future__ import annotations

import os
import threading
import time
from typing import Any

import psutil

from workers.curves import thinned

INTERVAL_SECONDS = 0.5


class Usage:
    """Samples a tree in the background from `start` to `stop`."""

    def __init__(self, pid: int, *, interval_seconds: float = INTERVAL_SECONDS) -> None:
        self.peak_memory_bytes: int | None = None
        self.memory_bytes = 0
        self._held: list[tuple[float, int]] = []
        self._made_at = time.monotonic()
        self._pid = pid
        self._interval_seconds = interval_seconds
        self._ended = threading.Event()
        self._thread = threading.Thread(target=self._watch, daemon=True, name="usage")
        self._cpu_seconds: dict[int, float] = {}
        self._begun_at = 0.0
        self._busy_at_start = 0.0
        self._ours_at_start = 0.0
        self._load_at_start: tuple[float, float, float] = (0.0, 0.0, 0.0)

    def start(self) -> None:
        """Begin to sample."""
        self._sample()
        self.mark()
        self._thread.start()

    def mark(self) -> None:
        """Count CPU time from here, so that loading is not part of the measured stretch."""
        self._begun_at = time.monotonic()
        self._load_at_start = os.getloadavg()
        self._busy_at_start = _busy_seconds()
        self._ours_at_start = self._our_seconds()

    def stop(self) -> None:
        """End the sampling; safe to call twice."""
        self._ended.set()
        if self._thread.is_alive():
            self._thread.join()

    def facts(self) -> dict[str, Any]:
        """Load and foreign CPU share since the mark; a share of all cores."""
        self._sample()
        elapsed = time.monotonic() - self._begun_at
        cores = psutil.cpu_count() or 1
        busy = _busy_seconds() - self._busy_at_start
        foreign = max(0.0, busy - (self._our_seconds() - self._ours_at_start))
        return {
            "cores": cores,
            "duration_seconds": round(elapsed, 3),
            "foreign_cpu_share": round(min(1.0, foreign / (elapsed * cores)), 4)
            if elapsed > 0
            else None,
            "load_average_before": [round(load, 2) for load in self._load_at_start],
            "load_average_after": [round(load, 2) for load in os.getloadavg()],
        }

    def look(self) -> None:
        """Take a sample now."""
        self._sample()

    def curve(self) -> list[tuple[float, int]]:
        """Seconds since the start and bytes of memory, since the last call."""
        held, self._held = self._held, []
        return thinned(held)

    def pids(self) -> list[int]:
        """The processes of the tree."""
        return [process.pid for process in _tree(self._pid)]

    def _our_seconds(self) -> float:
        own = psutil.Process().cpu_times()
        return sum(self._cpu_seconds.copy().values()) + own.user + own.system

    def _watch(self) -> None:
        while not self._ended.wait(self._interval_seconds):
            self._sample()

    def _sample(self) -> None:
        memory = 0
        for process in _tree(self._pid):
            try:
                with process.oneshot():
                    memory += process.memory_info().rss
                    times = process.cpu_times()
            except psutil.Error:
                continue
            self._cpu_seconds[process.pid] = times.user + times.system
        self.memory_bytes = memory
        self._held.append((round(time.monotonic() - self._made_at, 3), memory))
        if memory:
            self.peak_memory_bytes = max(self.peak_memory_bytes or 0, memory)


def _tree(pid: int) -> list[psutil.Process]:
    try:
        root = psutil.Process(pid)
        return [root, *root.children(recursive=True)]
    except psutil.Error:
        return []


def _busy_seconds() -> float:
    times = psutil.cpu_times()
    idle = times.idle + getattr(times, "iowait", 0.0)
    counted_in_user = getattr(times, "guest", 0.0) + getattr(times, "guest_nice", 0.0)
    return float(sum(times) - idle - counted_in_user)
