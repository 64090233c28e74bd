"""What measured boots teach: how far each line was off, per engine state and architecture; pure."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from statistics import median

from jobs.fit.amounts import Band, Basis
from jobs.fit.component import Component
from jobs.fit.estimate import Estimate
from jobs.model import BootMemory
from jobs.terminal import counted

SHIFTED = "CUDA context"
"""This line is off by an amount, whatever the wish; the others are off by a share."""

ENOUGH_BOOTS = 3
"""From so many boots on their own spread is the band; before, half of the old band is kept."""

Key = tuple[str, str, str]


@dataclass(frozen=True)
class Residual:
    """One line of one boot: estimated after load, and measured. Bytes."""

    engine: str
    architecture: str
    component: str
    estimated: int
    measured: int

    @property
    def key(self) -> Key:
        """What it teaches about."""
        return self.engine, self.architecture, self.component

    @property
    def off(self) -> float:
        """Bytes to add for the line that is shifted, else the factor to multiply with."""
        if self.component == SHIFTED:
            return float(self.measured - self.estimated)
        return self.measured / self.estimated if self.estimated else 1.0


@dataclass(frozen=True)
class Correction:
    """The least, the middle and the most that boots were off, and how many boots that were."""

    low: float
    middle: float
    high: float
    boots: int


@dataclass(frozen=True)
class Error:
    """Mean absolute error as a share of what was measured, before and after correction."""

    before: float
    after: float
    boots: int


def compare(
    found: Estimate, seen: BootMemory, *, process_bytes: int | None = None
) -> tuple[Residual, ...]:
    """Lines of an estimate beside those of a boot of the same wish.

    `process_bytes` is the process's memory on the card after load; what no line explains of it is
    laid to the CUDA context.
    """
    said = {
        "weights": seen.target.weights,
        "KV cache": seen.target.cache,
        "recurrent state": seen.target.recurrent,
        "compute": seen.target.compute,
        "projector buffers": seen.projector,
    }
    if seen.drafter is not None:
        said["drafter weights"] = seen.drafter.weights
        said["drafter cache"] = seen.drafter.cache
        said["drafter compute"] = seen.drafter.compute
    residuals = []
    explained = 0
    for line in found.components:
        measured = said.get(line.name)
        if measured is not None:
            residuals.append(_residual(found, line, measured))
        if line.name != SHIFTED:
            explained += line.loaded.likely if measured is None else measured
    if process_bytes is not None and process_bytes > explained:
        context = next(line for line in found.components if line.name == SHIFTED)
        residuals.append(_residual(found, context, process_bytes - explained))
    return tuple(residuals)


def learn(residuals: Iterable[Residual]) -> Mapping[Key, Correction]:
    """A correction for every line that boots were seen of."""
    offs: dict[Key, list[float]] = {}
    for each in residuals:
        offs.setdefault(each.key, []).append(each.off)
    return {key: Correction(min(v), median(v), max(v), len(v)) for key, v in offs.items()}


def corrected(found: Estimate, corrections: Mapping[Key, Correction]) -> Estimate:
    """The estimate with what boots of this engine and architecture taught."""
    setup = found.setup
    lines = []
    for line in found.components:
        key = (setup.state.learned_as, setup.target.architecture, line.name)
        correction = corrections.get(key)
        lines.append(_corrected(line, correction) if correction else line)
    return replace(found, components=tuple(lines))


def error(boots: Sequence[Sequence[Residual]]) -> Error | None:
    """How far off estimates were; after: each boot corrected by the other boots alone.

    None for fewer than two boots: a boot cannot judge what it taught.
    """
    if len(boots) < 2:
        return None
    before, after = [], []
    for index, boot in enumerate(boots):
        others = learn(each for i, other in enumerate(boots) if i != index for each in other)
        for each in boot:
            if each.measured:
                before.append(abs(each.estimated - each.measured) / each.measured)
                after.append(abs(_shift(each, others) - each.measured) / each.measured)
    if not before:
        return None
    return Error(sum(before) / len(before), sum(after) / len(after), len(boots))


def errors(boots: Sequence[Sequence[Residual]]) -> Mapping[str, Error]:
    """The same for each line alone, as far as two boots or more say something of it."""
    names = dict.fromkeys(each.component for boot in boots for each in boot)
    found = {}
    for name in names:
        own = [[each for each in boot if each.component == name] for boot in boots]
        if judged := error([boot for boot in own if boot]):
            found[name] = judged
    return found


def _residual(found: Estimate, line: Component, measured: int) -> Residual:
    setup = found.setup
    return Residual(
        engine=setup.state.learned_as,
        architecture=setup.target.architecture,
        component=line.name,
        estimated=line.loaded.likely,
        measured=measured,
    )


def _shift(each: Residual, corrections: Mapping[Key, Correction]) -> float:
    correction = corrections.get(each.key)
    if correction is None:
        return float(each.estimated)
    return _apply(each.estimated, correction.middle, shifted=each.component == SHIFTED)


def _apply(size: int, off: float, *, shifted: bool) -> float:
    return max(0.0, size + off if shifted else size * off)


def _corrected(line: Component, correction: Correction) -> Component:
    return replace(
        line,
        loaded=_band(line, line.loaded, correction),
        filled=_band(line, line.filled, correction),
        basis=Basis.MEASURED,
        note=f"{line.note}; corrected by {counted(correction.boots, 'boot')}".lstrip("; "),
    )


def _band(line: Component, band: Band, correction: Correction) -> Band:
    shifted = line.name == SHIFTED
    low, likely, high = (
        round(_apply(band.likely, off, shifted=shifted))
        for off in (correction.low, correction.middle, correction.high)
    )
    if correction.boots < ENOUGH_BOOTS:
        low = min(low, likely - (band.likely - band.low) // 2)
        high = max(high, likely + (band.high - band.likely) // 2)
    return Band(max(0, low), likely, high)
