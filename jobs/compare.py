"""What a result means against its baseline; says better or worse only beyond the noise."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from jobs.model import Validity, Verdict, VerdictKind
from jobs.stats import Difference, boot_spread, difference, is_degrading, median

MIN_USABLE_RUNS = 3
"""Fewer measured runs than this say nothing about a boot."""

SAME_WITHIN = 0.05
"""A difference that lies inside this band for certain is called the same."""

LEAST_EFFECT = 0.02
"""Smaller differences are not worth anybody's attention, however certain."""


@dataclass(frozen=True)
class BootRuns:
    """Decode speeds of one boot's usable runs, tokens per second, warm-up left out."""

    number: int
    speeds: tuple[float, ...]

    @property
    def speed(self) -> float:
        """The boot's value: the median of its runs."""
        return median(self.speeds)


@dataclass(frozen=True)
class Standing:
    """Whether a result may be judged at all, and why not."""

    validity: Validity
    reason: str = ""


def standing(
    boots: Sequence[BootRuns], *, runs_asked: int, boots_asked: int, worst: Validity, why: str
) -> Standing:
    """Validity of a whole result: `worst` is the gravest validity among its samples."""
    usable = [boot for boot in boots if len(boot.speeds) >= min(MIN_USABLE_RUNS, runs_asked)]
    falling = [boot.number for boot in usable if is_degrading(boot.speeds)]
    if falling:
        return Standing(Validity.UNSTABLE, f"speed falls run over run in boot {falling[0]}")
    short = boots_asked - len(usable)
    if short > 0:
        validity = worst if worst is not Validity.OK else Validity.TOO_SHORT
        return Standing(validity, why or f"{short} of {boots_asked} boots have too few usable runs")
    return Standing(Validity.OK)


def judge(
    candidate: Sequence[BootRuns],
    *,
    standing: Standing,
    baseline: Sequence[float],
    baseline_label: str,
    history: Sequence[Sequence[float]],
) -> Verdict:
    """Compare with the baseline's boot medians; `history` holds boot medians per build of the cell.

    A difference beyond the noise is a suspicion: boots of one build made in one go share what the
    machine was doing meanwhile, so only fresh boots can confirm it.
    """
    runs = sum(len(boot.speeds) for boot in candidate)
    counts = {"boots": len(candidate), "runs": runs}
    if standing.validity is Validity.UNSTABLE:
        return Verdict(VerdictKind.UNSTABLE, f"unstable: {standing.reason}", **counts)
    if standing.validity is not Validity.OK:
        return Verdict(VerdictKind.INVALID, f"not comparable: {standing.reason}", **counts)
    speeds = [boot.speed for boot in candidate]
    if not baseline:
        sentence = f"first result of its series: {median(speeds):.1f} t/s"
        return Verdict(VerdictKind.FIRST, sentence, **counts)
    found = difference(speeds, baseline, boot_spread([*history, speeds]))
    kind = kind_of(found)
    return Verdict(
        kind,
        _sentence(kind, found, baseline_label),
        effect=found.effect,
        low=found.low,
        high=found.high,
        resolution=found.resolution,
        **counts,
    )


def kind_of(found: Difference) -> VerdictKind:
    """Which of the four answers a difference gives."""
    if found.low > 0 and found.effect >= LEAST_EFFECT:
        return VerdictKind.SUSPECT_FASTER
    if found.high < 0 and found.effect <= -LEAST_EFFECT:
        return VerdictKind.SUSPECT_SLOWER
    if found.low > -SAME_WITHIN and found.high < SAME_WITHIN:
        return VerdictKind.SAME
    return VerdictKind.CANNOT_TELL


def _sentence(kind: VerdictKind, found: Difference, label: str) -> str:
    interval = f"99 % interval {_percent(found.low, signed=True)} to "
    interval += _percent(found.high, signed=True)
    match kind:
        case VerdictKind.SUSPECT_FASTER:
            return f"looks {_percent(found.effect)} faster than {label}, not confirmed ({interval})"
        case VerdictKind.SUSPECT_SLOWER:
            return (
                f"looks {_percent(-found.effect)} slower than {label}, not confirmed ({interval})"
            )
        case VerdictKind.SAME:
            return f"same as {label} within {_percent(max(abs(found.low), abs(found.high)))}"
        case _:
            return f"cannot tell it from {label} below {_percent(found.resolution)} ({interval})"


def _percent(fraction: float, *, signed: bool = False) -> str:
    return f"{100 * fraction:{'+' if signed else ''}.1f} %"


def tells_apart(faster: Sequence[float], slower: Sequence[float]) -> bool:
    """Whether two builds' boot medians differ beyond the noise; a rank needs that."""
    found = difference(faster, slower, boot_spread([faster, slower]))
    return kind_of(found) in (VerdictKind.SUSPECT_FASTER, VerdictKind.SUSPECT_SLOWER)
