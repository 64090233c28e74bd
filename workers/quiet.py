"""Keeps other work out of our numbers: waits for a quiet machine, marks a disturbed boot."""

from __future__ import annotations

import time
from dataclasses import replace

import psutil

from jobs.control import Control
from jobs.model import Boot, Validity

FOREIGN_SHARE_LIMIT = 0.10
"""Share of all processors that others may take during a boot. Undisturbed boots of a CPU engine
stay below 0.065; beside a compile it is above 0.7 and the speed falls to a twentieth."""

QUIET_SAMPLE_SECONDS = 1.0


def wait_for_quiet(control: Control, *, limit_seconds: float) -> bool:
    """Wait until the machine is idle enough to measure on; False where it did not become so."""
    deadline = time.monotonic() + limit_seconds
    while True:
        psutil.cpu_percent(None)
        control.wait(QUIET_SAMPLE_SECONDS)
        busy = psutil.cpu_percent(None) / 100
        if busy <= FOREIGN_SHARE_LIMIT:
            return True
        if time.monotonic() > deadline:
            return False
        control.report("wait for a quiet machine", note=f"{busy:.0%} busy")


def disturbance(boot: Boot) -> str:
    """What disturbed a boot, in words; empty where nothing did."""
    share = boot.environment.get("foreign_cpu_share")
    if share is None or share <= FOREIGN_SHARE_LIMIT:
        return ""
    return f"other work took {share:.0%} of the processors during boot {boot.number}"


def marked(boot: Boot) -> Boot:
    """The boot with its `ok` runs called tainted where something disturbed it."""
    why = disturbance(boot)
    if not why:
        return boot
    return replace(
        boot,
        measurements=tuple(
            replace(m, validity=Validity.TAINTED, reason=why) if m.validity is Validity.OK else m
            for m in boot.measurements
        ),
    )
