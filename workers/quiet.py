"""Keeps other work out of our numbers: waits for a quiet machine, marks a disturbed boot."""

from __future__ import annotations

import time
from collections.abc import Iterable, Mapping
from dataclasses import replace
from statistics import median
from typing import Any

import psutil

from jobs.control import Control
from jobs.dialect import wire
from jobs.errors import JobFailure
from jobs.machine_check import RELEASE_SLACK_BYTES
from jobs.model import Blame, Boot, Validity
from workers.gpu import SLOWED, Card

FOREIGN_SHARE_LIMIT = 0.10
"""Share of all processors that others may take during a boot. Undisturbed boots of a CPU engine
stay below 0.065; beside a compile it is above 0.7 and the speed falls to a twentieth."""

QUIET_SAMPLE_SECONDS = 1.0
CLOCK_BAND = 0.9
"""Share of a boot's fastest clock that its slowest run may have; work alone moves it less."""

RECOVER_SECONDS = 20.0
"""A card that was hot or held down is back at its usual clock in less."""

RELEASE_POLL_SECONDS = 0.25


def wait_for_quiet(control: Control, *, limit_seconds: float, card: Card | None = None) -> bool:
    """Wait until machine and card are idle enough to measure on; False where they did not."""
    deadline = time.monotonic() + limit_seconds
    while True:
        psutil.cpu_percent(None)
        control.wait(QUIET_SAMPLE_SECONDS)
        busy = psutil.cpu_percent(None) / 100
        others = card.reading(())["foreign_processes"] if card else None
        if busy <= FOREIGN_SHARE_LIMIT and not others:
            return True
        if time.monotonic() > deadline:
            return False
        note = f"{busy:.0%} busy" + (f", {others} on the card" if others else "")
        control.report("wait for a quiet machine", note=note)


def recover(control: Control, card: Card | None, *, limit_seconds: float) -> None:
    """Give a card time to cool before a disturbed boot is tried again."""
    if card is None:
        return
    control.report("wait for a quiet machine", note="the last boot was disturbed")
    control.wait(min(RECOVER_SECONDS, limit_seconds))


def wait_released(
    card: Card, before_bytes: int | None, control: Control, *, limit_seconds: float
) -> None:
    """Wait until the card's memory is back where it was; raises JobFailure where it stays taken.

    The next boot would fail to load and its engine be blamed.
    """
    if before_bytes is None:
        return
    deadline = time.monotonic() + limit_seconds
    while (held := card.reading(())["device_bytes"]) is not None:
        if held <= before_bytes + RELEASE_SLACK_BYTES:
            return
        if time.monotonic() > deadline:
            raise JobFailure(
                f"{(held - before_bytes) / 2**20:,.0f} MiB of the card are still taken after the "
                "server has ended",
                failure_class="memory_held",
                blame=Blame.INFRASTRUCTURE,
                phase="release",
                advice="Find what holds it; the rig takes no bench before it is free.",
            )
        control.wait(RELEASE_POLL_SECONDS)


def disturbance(boot: Boot, *, least_mhz: float | None = None) -> str:
    """What disturbed a boot, in words; empty where nothing did.

    `least_mhz` is the low end of the clocks that this rig's card usually has under load.
    """
    share = boot.environment.get("foreign_cpu_share")
    if share is not None and share > FOREIGN_SHARE_LIMIT:
        return f"other work took {share:.0%} of the processors during boot {boot.number}"
    return _of_card(boot) or _of_clock(boot, least_mhz)


def clock_of(afters: Iterable[Mapping[str, Any]]) -> float | None:
    """The card's middle clock under load, by what was read after each measured run of a boot."""
    cards = (wire.mapping(after.get("card")) for after in afters)
    clocks = (wire.sequence(wire.mapping(card.get("range")).get("sm_mhz")) for card in cards)
    middles = [wire.number(each[1]) for each in clocks if len(each) == 3]
    known = [each for each in middles if each]
    return median(known) if known else None


def _of_clock(boot: Boot, least_mhz: float | None) -> str:
    clock = clock_of(m.after for m in boot.measurements if not m.warmup)
    if clock is None or least_mhz is None or clock >= least_mhz:
        return ""
    return (
        f"the card ran at {clock:.0f} MHz during boot {boot.number}, "
        f"{least_mhz:.0f} MHz at least are usual on this rig"
    )


def _of_card(boot: Boot) -> str:
    """What the card says of others, of heat and of its clock during the measured runs."""
    cards = [wire.mapping(m.after.get("card")) for m in boot.measurements if not m.warmup]
    for card in cards:
        # In a container with pids of its own our server is a stranger to itself.
        others = wire.count(card.get("foreign_processes"))
        if others and card.get("process_bytes") is not None:
            return f"{others} other processes computed on the card during boot {boot.number}"
        slowed = sorted(SLOWED & set(wire.sequence(card.get("reasons"))))
        if slowed:
            return f"the card was slowed down during boot {boot.number}: {', '.join(slowed)}"
    clocks = [wire.sequence(wire.mapping(card.get("range")).get("sm_mhz")) for card in cards]
    middles = [wire.number(each[1]) for each in clocks if len(each) == 3]
    known = [each for each in middles if each]
    if known and min(known) < CLOCK_BAND * max(known):
        return (
            f"the card's clock fell from {max(known):.0f} to {min(known):.0f} MHz "
            f"during boot {boot.number}"
        )
    return ""


def marked(boot: Boot, *, least_mhz: float | None = None) -> Boot:
    """The boot with its `ok` runs called tainted where something disturbed it."""
    why = disturbance(boot, least_mhz=least_mhz)
    if not why:
        return boot
    return replace(
        boot,
        measurements=tuple(
            replace(m, validity=Validity.TAINTED, reason=why) if m.validity is Validity.OK else m
            for m in boot.measurements
        ),
    )
