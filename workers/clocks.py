"""A card's usual clock under load, learned from its rig's own boots; it asks no card."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from sqlmodel import Session

from jobs.stats import usual_low
from jobs.store import results
from workers.host import environment_of
from workers.quiet import CLOCK_BAND, clock_of

MOST_RESULTS = 40
"""Older boots may have run in another room or with another fan."""


def usual_clock(session: Session, rig: str, facts: Mapping[str, Any]) -> float | None:
    """The low end of the usual clocks in MHz; None where too few boots tell.

    Only boots of the same hardware, driver and power limit count, and only `ok` ones: what was
    clocked down moves no band. The rule is that of `jobs.stats.usual_low`; work alone moves a clock
    within `CLOCK_BAND`.
    """
    mine = environment_of(facts)
    newest = results.ok_on_rig(session, rig, most=MOST_RESULTS)
    alike = [number for number, found in newest if environment_of(found) == mine]
    boots = results.after_runs(session, alike).values()
    clocks = [clock for clock in map(clock_of, boots) if clock is not None]
    return usual_low(clocks, least_share=1 - CLOCK_BAND)
