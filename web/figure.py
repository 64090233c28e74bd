"""Geometry of the small pictures: where to draw and what to say instead; no markup here."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from statistics import median

from jobs.model import Validity
from jobs.store.shown import Entry, ShownBoot

WIDTH, HEIGHT = 640, 240
LEFT, RIGHT, TOP, BOTTOM = 52, 12, 14, 30
TICKS = 4


@dataclass(frozen=True)
class Dot:
    """One run."""

    x: float
    y: float
    counted: bool


@dataclass(frozen=True)
class Column:
    """One boot: its name below, its runs, and its median as a bar."""

    label: str
    x: float
    left: float
    right: float
    median_y: float | None
    dots: tuple[Dot, ...]


@dataclass(frozen=True)
class Tick:
    label: str
    y: float


@dataclass(frozen=True)
class RunsFigure:
    """The t/s of every run, boot beside boot, and the same in words."""

    ticks: tuple[Tick, ...]
    columns: tuple[Column, ...]
    words: str


@dataclass(frozen=True)
class Bar:
    """A speed as a share of its board's fastest boot, in percent of the width."""

    length: float
    low: float
    high: float

    @property
    def span(self) -> float:
        return self.high - self.low


def bar(entry: Entry, fastest: float) -> Bar | None:
    """The bar of one line; None without a speed."""
    if not entry.decode_tps or fastest <= 0:
        return None
    low, high = entry.spread or (entry.decode_tps, entry.decode_tps)
    return Bar(*(round(100 * value / fastest, 2) for value in (entry.decode_tps, low, high)))


def runs_figure(boots: Sequence[ShownBoot]) -> RunsFigure | None:
    """Every measured run but the warm-ups; None where there is none."""
    rates = [
        sample.decode_tps
        for boot in boots
        for sample in boot.samples
        if not sample.warmup and _drawable(sample.decode_tps)
    ]
    known = [rate for rate in rates if rate is not None]
    if not known:
        return None
    marks = _marks(min(known), max(known))
    low, high = marks[0], marks[-1]

    def height(rate: float) -> float:
        share = (rate - low) / (high - low)
        return round(HEIGHT - BOTTOM - share * (HEIGHT - TOP - BOTTOM), 1)

    room = (WIDTH - LEFT - RIGHT) / len(boots)
    columns = []
    for place, boot in enumerate(boots):
        left = LEFT + place * room
        drawn = [s for s in boot.samples if not s.warmup and _drawable(s.decode_tps)]
        counted = [s.decode_tps for s in drawn if s.validity is Validity.OK and s.decode_tps]
        step = room * 0.6 / (len(drawn) + 1)
        columns.append(
            Column(
                label=f"boot {boot.number}",
                x=round(left + room / 2, 1),
                left=round(left + room * 0.2, 1),
                right=round(left + room * 0.8, 1),
                median_y=height(median(counted)) if counted else None,
                dots=tuple(
                    Dot(
                        x=round(left + room * 0.2 + step * number, 1),
                        y=height(sample.decode_tps or 0.0),
                        counted=sample.validity is Validity.OK,
                    )
                    for number, sample in enumerate(drawn, start=1)
                ),
            )
        )
    return RunsFigure(
        ticks=tuple(Tick(f"{mark:g}", height(mark)) for mark in marks),
        columns=tuple(columns),
        words=_words(boots),
    )


def _drawable(rate: float | None) -> bool:
    return rate is not None and math.isfinite(rate)


def _marks(low: float, high: float) -> list[float]:
    """Round numbers from just below the slowest to just above the fastest."""
    span = max(high - low, abs(high) * 0.02, 0.1)
    rough = span / TICKS
    power = 10 ** math.floor(math.log10(rough))
    step = next(power * factor for factor in (1, 2, 5, 10) if power * factor >= rough)
    first = math.floor(low / step)
    last = max(math.ceil(high / step), first + 1)
    return [round(step * number, 6) for number in range(first, last + 1)]


def _words(boots: Sequence[ShownBoot]) -> str:
    told = []
    for boot in boots:
        rates = [
            f"{sample.decode_tps:.1f}"
            for sample in boot.samples
            if not sample.warmup and sample.decode_tps is not None
        ]
        told.append(f"boot {boot.number}: {', '.join(rates) if rates else 'no run'}")
    return "Decode speed of each run in tokens per second. " + "; ".join(told) + "."
