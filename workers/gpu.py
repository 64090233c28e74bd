"""What NVIDIA's driver says of one card and of our processes on it; it changes no setting."""

from __future__ import annotations

import contextlib
import threading
import time
from collections.abc import Callable, Collection, Iterator
from pathlib import Path
from typing import Any

from workers.curves import thinned

INTERVAL_SECONDS = 0.25

REASONS = {
    0x01: "idle",
    0x02: "application clocks",
    0x04: "power cap",
    0x08: "hardware slowdown",
    0x10: "sync boost",
    0x20: "thermal",
    0x40: "hardware thermal",
    0x80: "power brake",
    0x100: "display clocks",
}
SLOWED = frozenset({"hardware slowdown", "thermal", "hardware thermal", "power brake"})
"""What slows a card against its will; its own power limit is how it always runs when it works."""


SHARED_DEVICES = ("/dev/nvidiactl", "/dev/nvidia-uvm", "/dev/nvidia-uvm-tools")
"""What every program that computes on a card opens beside the card itself."""

ALL_LAYERS = 999


class Card:
    """One card, through the driver's own library. Close it."""

    def __init__(self, index: int, nvml: Any) -> None:
        self._nvml = nvml
        self._handle = nvml.nvmlDeviceGetHandleByIndex(index)

    def devices(self) -> tuple[str, ...]:
        """The device files of this card that are there, and of no other."""
        number = self._ask(self._nvml.nvmlDeviceGetMinorNumber, self._handle)
        own = () if number is None else (f"/dev/nvidia{number}",)
        return tuple(path for path in (*own, *SHARED_DEVICES) if Path(path).exists())

    def facts(self) -> dict[str, Any]:
        """What stays the same while a bench lasts; None where the driver does not say."""
        nvml, handle = self._nvml, self._handle
        memory = self._ask(nvml.nvmlDeviceGetMemoryInfo, handle)
        return {
            "uuid": _text(self._ask(nvml.nvmlDeviceGetUUID, handle)),
            "name": _text(self._ask(nvml.nvmlDeviceGetName, handle)),
            "driver": _text(self._ask(nvml.nvmlSystemGetDriverVersion)),
            "cuda": self._ask(nvml.nvmlSystemGetCudaDriverVersion_v2),
            "compute": self._ask(nvml.nvmlDeviceGetCudaComputeCapability, handle),
            "memory_bytes": memory and memory.total,
            "power_limit_mw": self._ask(nvml.nvmlDeviceGetPowerManagementLimit, handle),
            "most_sm_mhz": self._ask(nvml.nvmlDeviceGetMaxClockInfo, handle, nvml.NVML_CLOCK_SM),
            "most_memory_mhz": self._ask(
                nvml.nvmlDeviceGetMaxClockInfo, handle, nvml.NVML_CLOCK_MEM
            ),
            "ecc": self._ask(nvml.nvmlDeviceGetEccMode, handle),
            "mig": self._ask(nvml.nvmlDeviceGetMigMode, handle),
        }

    def reading(self, pids: Collection[int]) -> dict[str, Any]:
        """Memory of these processes and of all, clocks, temperature and power at this moment."""
        nvml, handle = self._nvml, self._handle
        memory = self._ask(nvml.nvmlDeviceGetMemoryInfo, handle)
        ours, others = self._processes(pids)
        mask = self._ask(nvml.nvmlDeviceGetCurrentClocksThrottleReasons, handle) or 0
        return {
            "process_bytes": ours,
            "foreign_processes": others,
            "device_bytes": memory and memory.used,
            "sm_mhz": self._ask(nvml.nvmlDeviceGetClockInfo, handle, nvml.NVML_CLOCK_SM),
            "memory_mhz": self._ask(nvml.nvmlDeviceGetClockInfo, handle, nvml.NVML_CLOCK_MEM),
            "celsius": self._ask(nvml.nvmlDeviceGetTemperature, handle, nvml.NVML_TEMPERATURE_GPU),
            "power_mw": self._ask(nvml.nvmlDeviceGetPowerUsage, handle),
            "reasons": [word for bit, word in REASONS.items() if mask & bit],
        }

    def held_by(self, pids: Collection[int]) -> int | None:
        """Bytes that these processes hold on this card together; None where nobody can say."""
        return self._processes(pids)[0]

    def close(self) -> None:
        """Let go of the driver's library."""
        with contextlib.suppress(self._nvml.NVMLError):
            self._nvml.nvmlShutdown()

    def _processes(self, pids: Collection[int]) -> tuple[int | None, int | None]:
        running = self._ask(self._nvml.nvmlDeviceGetComputeRunningProcesses, self._handle)
        if running is None:
            return None, None
        ours = [each.usedGpuMemory for each in running if each.pid in pids]
        known = [size for size in ours if size is not None]
        others = sum(each.pid not in pids for each in running)
        return (sum(known) if known else None), others

    def _ask(self, question: Callable[..., Any], *words: Any) -> Any:
        try:
            return question(*words)
        except self._nvml.NVMLError:
            return None


@contextlib.contextmanager
def closing_card(card: Card | None) -> Iterator[None]:
    """Lets go of a card, if there is one, when the work on it is over."""
    try:
        yield
    finally:
        if card:
            card.close()


def first_card(index: int = 0) -> Card | None:
    """The card of that number, or None where this machine has no driver or no such card."""
    try:
        import pynvml
    except ImportError:
        return None
    try:
        pynvml.nvmlInit()
        return Card(index, pynvml)
    except pynvml.NVMLError:
        return None


class CardWatch:
    """Readings of a card in the background, for one tree of processes."""

    def __init__(
        self,
        card: Card,
        pids: Callable[[], Collection[int]],
        *,
        interval_seconds: float = INTERVAL_SECONDS,
    ) -> None:
        self._card = card
        self._pids = pids
        self._interval_seconds = interval_seconds
        self._ended = threading.Event()
        self._lock = threading.Lock()
        self._held: list[dict[str, Any]] = []
        self._begun_at = time.monotonic()
        self.peak_bytes: int | None = None
        self._thread = threading.Thread(target=self._watch, daemon=True, name="card")

    def start(self) -> None:
        """Begin to read."""
        self._thread.start()

    def stop(self) -> None:
        """End the reading; safe to call twice."""
        self._ended.set()
        if self._thread.is_alive():
            self._thread.join()

    def stretch(self) -> dict[str, Any]:
        """The card now, and its clocks, heat and power since the last call."""
        now = self._card.reading(self._pids())
        self._hear(now)
        with self._lock:
            held, self._held = self._held, []
        summary = {name: _range([each[name] for each in held]) for name in _MOVING}
        reasons = sorted({word for each in held for word in each["reasons"]})
        foreign = list(_known([each["foreign_processes"] for each in held]))
        return {
            **now,
            "foreign_processes": max(foreign, default=None),
            "range": summary,
            "curve": thinned([[each[name] for name in CURVE] for each in held]),
            "reasons": reasons,
            "readings": len(held),
        }

    def _watch(self) -> None:
        while not self._ended.wait(self._interval_seconds):
            self._hear(self._card.reading(self._pids()))

    def _hear(self, reading: dict[str, Any]) -> None:
        with self._lock:
            self._held.append({**reading, "seconds": round(time.monotonic() - self._begun_at, 3)})
            taken = reading["process_bytes"]
            if taken is not None:
                self.peak_bytes = max(self.peak_bytes or 0, taken)


CURVE = ("seconds", "power_mw", "process_bytes", "sm_mhz")
"""What each point of a curve holds: seconds since the server started, then what the card said."""

_MOVING = ("process_bytes", "device_bytes", "sm_mhz", "memory_mhz", "celsius", "power_mw")


def _range(values: list[int | None]) -> list[int] | None:
    """The least, the middle and the most."""
    known = sorted(_known(values))
    return [known[0], known[len(known) // 2], known[-1]] if known else None


def _known(values: list[int | None]) -> Iterator[int]:
    yield from (value for value in values if value is not None)


def _text(value: Any) -> str | None:
    if isinstance(value, bytes):
        return value.decode("utf-8", "replace")
    return value if isinstance(value, str) else None
