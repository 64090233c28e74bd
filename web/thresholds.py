"""The thresholds behind verdicts and pages, with their reasons, as the method page quotes them."""

from __future__ import annotations

from dataclasses import dataclass

from jobs import compare, stats

# A niche fork changes the ranking within days: after two weeks a number describes the past.
STALE_DAYS = 14


@dataclass(frozen=True)
class Constant:
    """A named constant that a number on a page depends on."""

    name: str
    value: str
    reason: str


CONSTANTS = (
    Constant(
        "MIN_USABLE_RUNS",
        f"{compare.MIN_USABLE_RUNS} runs",
        "a boot with fewer runs that count says nothing",
    ),
    Constant(
        "LEAST_EFFECT",
        f"{compare.LEAST_EFFECT:.0%}",
        "a smaller difference is not worth attention, however certain it is",
    ),
    Constant(
        "SAME_WITHIN",
        f"{compare.SAME_WITHIN:.0%}",
        "a difference that lies inside this band for certain is called the same",
    ),
    Constant(
        "CONFIDENCE",
        f"{stats.CONFIDENCE:.0%}",
        "every interval is this sure; the noise between boots is pooled over builds",
    ),
    Constant(
        "PRIOR_BOOT_SD",
        f"{stats.PRIOR_BOOT_SD:.0%}",
        "the spread between boots that is assumed until enough of them were seen",
    ),
    Constant(
        "STALE_DAYS",
        f"{STALE_DAYS} days",
        "niche forks change the ranking within days; an older number describes the past",
    ),
)
