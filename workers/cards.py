"""The cards of this machine by NVML: names, driver, power limits, memory; it changes nothing."""

from __future__ import annotations

import hashlib
from typing import Any

from jobs.machine_check import CardMemory


def binding() -> Any | None:
    """The driver's binding; None where the package is missing."""
    try:
        import pynvml
    except ImportError:
        return None
    return pynvml


def card_facts(nvml: Any | None = None) -> dict[str, Any]:
    """Facts that go public with a result; nothing where no driver answers."""
    nvml = nvml or binding()
    if nvml is None:
        return {}
    try:
        nvml.nvmlInit()
        cards = [nvml.nvmlDeviceGetHandleByIndex(i) for i in range(nvml.nvmlDeviceGetCount())]
        if not cards:
            return {}
        return {
            "driver": _text(nvml.nvmlSystemGetDriverVersion()),
            "cards": [_name(nvml, card) for card in cards],
            "power_limits_w": [_power_limit(nvml, card) for card in cards],
        }
    except nvml.NVMLError:
        return {}


def self_test(nvml: Any | None = None) -> tuple[str, tuple[CardMemory, ...]]:
    """Why the cards do not answer, or nothing; and what is held on each while we run nothing."""
    nvml = nvml or binding()
    if nvml is None:
        return "the package nvidia-ml-py is missing", ()
    try:
        nvml.nvmlInit()
        cards = [nvml.nvmlDeviceGetHandleByIndex(i) for i in range(nvml.nvmlDeviceGetCount())]
        if not cards:
            return "the driver knows no card", ()
        return "", tuple(_memory(nvml, card) for card in cards)
    except nvml.NVMLError as fault:
        return " ".join(str(fault).split())[:200] or type(fault).__name__, ()


def _memory(nvml: Any, card: Any) -> CardMemory:
    found = nvml.nvmlDeviceGetMemoryInfo(card)
    return CardMemory(_text(nvml.nvmlDeviceGetName(card)), int(found.used), int(found.total))


def _name(nvml: Any, card: Any) -> str:
    """The card's name and a digest of its UUID, which names this one and no other."""
    uuid = hashlib.sha256(_text(nvml.nvmlDeviceGetUUID(card)).encode()).hexdigest()[:12]
    return f"{_text(nvml.nvmlDeviceGetName(card))} {uuid}"


def _power_limit(nvml: Any, card: Any) -> int | None:
    """Watts; None for a card that has no limit to set."""
    try:
        return round(int(nvml.nvmlDeviceGetEnforcedPowerLimit(card)) / 1000)
    except nvml.NVMLError:
        return None


def _text(value: str | bytes) -> str:
    return value.decode(errors="replace") if isinstance(value, bytes) else str(value)
