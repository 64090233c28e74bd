"""Numbers in, numbers out: medians, pooled spread, intervals; refuses to know what they measure."""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from scipy.special import stdtrit

PRIOR_BOOT_SD = 0.01
"""Boot-to-boot spread assumed before any was seen: median to rms of dense cells is 0.06-0.9 %,
of cells that use the CPU 1.1-4.4 % (public llama-bench sessions)."""

PRIOR_WEIGHT = 4.0
"""Degrees of freedom the assumption is worth."""

CONFIDENCE = 0.99

LEAST_USUAL = 5
"""Of fewer values nobody knows what is usual."""

MAD_TO_SD = 1.4826
"""A median absolute deviation times this is the standard deviation of normal values."""


@dataclass(frozen=True)
class Spread:
    """A standard deviation on the log scale and the degrees of freedom behind it."""

    sd: float
    dof: float


@dataclass(frozen=True)
class Difference:
    """Relative change with its interval, and the half-width below which nothing can be told."""

    effect: float
    low: float
    high: float
    resolution: float


def median(values: Sequence[float]) -> float:
    """The middle value; raises `ValueError` for none."""
    if not values:
        raise ValueError("the median of nothing")
    return float(np.median(values))


def boot_spread(groups: Sequence[Sequence[float]]) -> Spread:
    """Spread between boots of the same build, pooled over builds, held up by the assumption.

    `groups` holds, per build, the boots' median speeds. Pooled variance:
    (w s0^2 + sum (n_i - 1) s_i^2) / (w + sum (n_i - 1)).
    """
    squares, dof = PRIOR_WEIGHT * PRIOR_BOOT_SD**2, PRIOR_WEIGHT
    for group in groups:
        if len(group) < 2:
            continue
        logs = np.log(np.asarray(group, dtype=float))
        squares += float(((logs - logs.mean()) ** 2).sum())
        dof += len(group) - 1
    return Spread(math.sqrt(squares / dof), dof)


def difference(
    candidate: Sequence[float],
    baseline: Sequence[float],
    spread: Spread,
    *,
    confidence: float = CONFIDENCE,
) -> Difference:
    """How much faster the candidate's boots are: a two-sided t interval on mean log speed."""
    if not candidate or not baseline:
        raise ValueError("a difference needs boots on both sides")
    gap = float(np.mean(np.log(candidate)) - np.mean(np.log(baseline)))
    quantile = float(stdtrit(spread.dof, 0.5 + confidence / 2))
    half = quantile * spread.sd * math.sqrt(1 / len(candidate) + 1 / len(baseline))
    return Difference(
        effect=math.expm1(gap),
        low=math.expm1(gap - half),
        high=math.expm1(gap + half),
        resolution=math.expm1(half),
    )


def is_degrading(runs: Sequence[float]) -> bool:
    """Whether speed falls run over run within one boot.

    Up to four runs: every neighbour falls by more than 15 %, or last/first is below 0.7. From
    five runs on: Mann-Kendall's S at a one-sided p of at most 0.01 and a Theil-Sen fall of at
    least 5 % over the session. (Kendall 1938; Theil 1950, Sen 1968.)
    """
    if len(runs) < 3 or min(runs) <= 0:
        return False
    if len(runs) < 5:
        falls = [later / earlier for earlier, later in itertools.pairwise(runs)]
        return all(fall < 0.85 for fall in falls) or runs[-1] / runs[0] < 0.7
    pairs = [(i, j) for i in range(len(runs)) for j in range(i + 1, len(runs))]
    score = sum(int(np.sign(runs[j] - runs[i])) for i, j in pairs)
    slope = float(np.median([(runs[j] - runs[i]) / (j - i) for i, j in pairs]))
    fall = slope * (len(runs) - 1) / median(runs)
    return _kendall_tail(score, len(runs)) <= 0.01 and fall <= -0.05


def _kendall_tail(score: int, n: int) -> float:
    """P(S <= score) for n untied values in random order, by Kendall's recursion."""
    counts = {0: 1}
    for size in range(2, n + 1):
        grown: dict[int, int] = {}
        for inversions, count in counts.items():
            for extra in range(size):
                grown[inversions + extra] = grown.get(inversions + extra, 0) + count
        counts = grown
    most = n * (n - 1) // 2
    total = sum(counts.values())
    return sum(c for inversions, c in counts.items() if most - 2 * inversions <= score) / total


def usual_low(values: Sequence[float], *, least_share: float) -> float | None:
    """The low end of what is usual; None for fewer than `LEAST_USUAL` values.

    Median minus three robust standard deviations (1.4826 times the median absolute deviation, which
    outliers do not move), and never nearer to the median than `least_share` of it. (Leys et al.
    2013, "Detecting outliers", J. Exp. Soc. Psychol. 49: three is their very conservative cut.)
    """
    if len(values) < LEAST_USUAL:
        return None
    middle = median(values)
    deviation = MAD_TO_SD * median([abs(value - middle) for value in values])
    return middle - max(3 * deviation, least_share * middle)
