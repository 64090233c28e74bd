"""The page of one rig as a value: memory by layout, speed by filled depth, and what is not said."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from jobs.fit.amounts import mib
from jobs.model import Layout
from jobs.store.rig_boots import RigBoot, RigMeasured
from web.pages import Page

WIDTH, HEIGHT = 640, 300
LEFT, RIGHT, TOP, BOTTOM = 52, 16, 14, 34
LEAST_DEPTHS = 3
"""A line through fewer depths says nothing of depth."""


@dataclass(frozen=True)
class MemoryRow:
    """What one layout took after load, MiB as text, empty where nothing said it."""

    engine: str
    revision: str
    model: str
    context: int
    cache: str
    ubatch: int
    weights: str
    kv: str
    recurrent: str
    compute: str
    process: str
    result_id: int


@dataclass(frozen=True)
class Spot:
    """One depth of a line, where it is drawn and what it says."""

    x: float
    y: float
    filled: int
    allocated: int
    decode_tps: float
    prefill_tps: float | None
    result_id: int


@dataclass(frozen=True)
class DepthLine:
    """One engine, model and layout over depths; `number` chooses how it is drawn."""

    number: int
    name: str
    points: str
    spots: tuple[Spot, ...]


@dataclass(frozen=True)
class DepthFigure:
    """Decode speed by filled depth; ticks are (text, place)."""

    lines: tuple[DepthLine, ...]
    across: tuple[tuple[str, float], ...]
    up: tuple[tuple[str, float], ...]
    words: str


def rig(found: RigMeasured) -> Page:
    """Everything that was measured on one rig, as far as it is memory or depth."""
    return Page(
        f"rigs/{found.id}.html",
        "rig.html",
        f"Rig {found.name}",
        {
            "rig": found,
            "memory": memory_rows(found.boots),
            "figure": depth_figure(found.boots),
            "twins": len({each.result_id for each in found.boots if each.is_twin}),
        },
    )


def memory_rows(boots: Iterable[RigBoot]) -> tuple[MemoryRow, ...]:
    """One row for each layout, of its newest boot."""
    found: dict[tuple[str, ...], MemoryRow] = {}
    for boot in boots:
        if boot.memory is None or boot.layout is None or boot.memory.process is None:
            continue
        row = _memory_row(boot, boot.layout)
        found[row.engine, row.revision, row.model, str(boot.layout)] = row
    return tuple(
        sorted(
            found.values(),
            key=lambda row: (row.model, row.engine, row.context, row.cache, -row.ubatch),
        )
    )


def _memory_row(boot: RigBoot, layout: Layout) -> MemoryRow:
    assert boot.memory is not None  # noqa: S101 - the caller looked
    parts = [boot.memory.target, *filter(None, [boot.memory.drafter])]

    def of(name: str) -> str:
        known = [size for part in parts if (size := getattr(part, name)) is not None]
        return mib(sum(known)) if known else ""

    types = dict.fromkeys((layout.cache_key, layout.cache_value))
    return MemoryRow(
        engine=boot.engine,
        revision=boot.revision,
        model=f"{boot.model} with {boot.drafter}" if boot.drafter else boot.model,
        context=layout.context_tokens,
        cache="/".join(types),
        ubatch=layout.ubatch,
        weights=of("weights"),
        kv=of("cache"),
        recurrent=of("recurrent"),
        compute=of("compute"),
        process=mib(boot.memory.process or 0),
        result_id=boot.result_id,
    )


def depth_figure(boots: Sequence[RigBoot]) -> DepthFigure | None:
    """A line for what was measured at three depths or more; None where nothing was."""
    groups: dict[str, dict[int, RigBoot]] = {}
    for boot in boots:
        if boot.filled is None or not _drawable(boot.decode_tps) or boot.layout is None:
            continue
        name = (
            f"{boot.engine} {boot.revision}, {boot.model}, {boot.layout.cache_key}, "
            f"{boot.allocated:,} allocated, micro-batch {boot.layout.ubatch}"
        )
        groups.setdefault(name, {})[boot.filled] = boot
    kept = {name: group for name, group in groups.items() if len(group) >= LEAST_DEPTHS}
    if not kept:
        return None
    deepest = max(max(group) for group in kept.values())
    fastest = max(each.decode_tps or 0 for group in kept.values() for each in group.values())
    step = _round_step(fastest)
    top = math.ceil(fastest / step) * step
    lines = tuple(
        _line(number, name, group, deepest=deepest, top=top)
        for number, (name, group) in enumerate(sorted(kept.items()), start=1)
    )
    said = (
        f"{line.name}: "
        + ", ".join(f"{spot.decode_tps:.1f} at {spot.filled:,}" for spot in line.spots)
        for line in lines
    )
    return DepthFigure(
        lines=lines,
        across=tuple((_short(each), _x(each, deepest)) for each in _depths(deepest)),
        up=tuple((f"{n * step:g}", _y(n * step, top)) for n in range(round(top / step) + 1)),
        words="Decode speed in tokens per second by filled tokens. " + "; ".join(said) + ".",
    )


def _line(
    number: int, name: str, group: dict[int, RigBoot], *, deepest: int, top: float
) -> DepthLine:
    spots = tuple(
        Spot(
            x=_x(filled, deepest),
            y=_y(boot.decode_tps or 0, top),
            filled=filled,
            allocated=boot.allocated,
            decode_tps=boot.decode_tps or 0,
            prefill_tps=boot.prefill_tps,
            result_id=boot.result_id,
        )
        for filled, boot in sorted(group.items())
    )
    return DepthLine(number, name, " ".join(f"{each.x},{each.y}" for each in spots), spots)


def _x(filled: int, deepest: int) -> float:
    return round(LEFT + (WIDTH - LEFT - RIGHT) * filled / deepest, 1)


def _y(rate: float, top: float) -> float:
    return round(HEIGHT - BOTTOM - (HEIGHT - TOP - BOTTOM) * rate / top, 1)


def _depths(deepest: int) -> list[int]:
    step = _round_step(deepest)
    return [round(step * number) for number in range(int(deepest / step) + 1)]


def _round_step(most: float) -> float:
    rough = most / 5
    power = 10 ** math.floor(math.log10(rough))
    return float(next(power * factor for factor in (1, 2, 5, 10) if power * factor >= rough))


def _short(tokens: int) -> str:
    return f"{tokens // 1000}K" if tokens >= 1000 and tokens % 1000 == 0 else f"{tokens:,}"


def _drawable(rate: float | None) -> bool:
    return rate is not None and math.isfinite(rate) and rate > 0
