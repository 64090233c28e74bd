"""Memory that given processes hold on the cards of this machine, by NVML; it judges nothing."""

from __future__ import annotations

from collections.abc import Callable, Collection
from typing import Any

import structlog

CardMemory = Callable[[Collection[int]], int | None]
"""Bytes that these processes hold together; None where nobody can say."""

log = structlog.get_logger()


def card_memory() -> CardMemory | None:
    """How to ask the driver; None on a machine that has none."""
    try:
        import pynvml
    except ImportError:
        return None
    return reader_of(pynvml)


def reader_of(nvml: Any) -> CardMemory | None:
    """Asks through this binding of NVML, as long as it answers."""
    try:
        nvml.nvmlInit()
    except nvml.NVMLError:
        return None

    def read(pids: Collection[int]) -> int | None:
        try:
            return _held(nvml, pids)
        except nvml.NVMLError as fault:
            log.warning("card memory not read", cause=str(fault))
            return None

    return read


def _held(nvml: Any, pids: Collection[int]) -> int | None:
    """None where no card knows the processes, as in a container that has pids of its own."""
    sizes: list[int | None] = []
    for index in range(nvml.nvmlDeviceGetCount()):
        card = nvml.nvmlDeviceGetHandleByIndex(index)
        listed = [
            *nvml.nvmlDeviceGetComputeRunningProcesses(card),
            *nvml.nvmlDeviceGetGraphicsRunningProcesses(card),
        ]
        # A process that computes and draws is in both lists, with all it holds.
        sizes += {each.pid: each.usedGpuMemory for each in listed if each.pid in pids}.values()
    known = [size for size in sizes if size is not None]
    return sum(known) if known and len(known) == len(sizes) else None
