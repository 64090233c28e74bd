"""The page of workers and rigs as a value, with the picture of each golden; pure, no markup."""

from __future__ import annotations

from dataclasses import dataclass

from jobs import health
from jobs.health import Outcome
from jobs.store.workshop import ShownRig, WorkerAtWork, Workshop
from web.pages import Page

WIDTH, HEIGHT, EDGE = 320, 72, 8
SHOWN_FACTS = (
    "cpu_model",
    "cards",
    "driver",
    "power_limits_w",
    "usable_cores",
    "memory_gib",
    "kernel",
    "governor",
)
LOOKS = {
    "working": "good",
    "idle": "quiet",
    "paused": "warn",
    "draining": "warn",
    "held": "bad",
    "silent": "bad",
    "gone": "bad",
    "trusted": "good",
    "unproven": "warn",
    "quarantined": "bad",
}


@dataclass(frozen=True)
class Spot:
    """One run of a golden."""

    x: float
    y: float
    is_good: bool


@dataclass(frozen=True)
class GoldenFigure:
    """Runs of a golden, the oldest left, over the band of the newest."""

    spots: tuple[Spot, ...]
    band_y: float
    band_height: float
    words: str


@dataclass(frozen=True)
class RigView:
    """A rig with its picture and the facts of its machine in words."""

    rig: ShownRig
    figure: GoldenFigure | None
    facts: tuple[tuple[str, str], ...]
    look: str


def workers(found: Workshop) -> Page:
    """Who works, what they do, how far each rig can be believed."""
    return Page(
        "workers.html",
        "workers.html",
        "Workers and rigs",
        {
            "shop": found,
            "rigs": tuple(
                RigView(rig, figure(rig), _facts(rig), LOOKS[rig.state]) for rig in found.rigs
            ),
            "looks": LOOKS,
            "ages": {each.name: age(each.beat_age_seconds) for each in found.workers},
            "progress": {each.name: progress(each) for each in found.workers if each.job},
        },
    )


def age(seconds: int) -> str:
    """How long ago, as short as it can be told."""
    for size, name in ((86_400, "d"), (3600, "h"), (60, "min")):
        if seconds >= size:
            return f"{seconds // size} {name} ago"
    return f"{seconds} s ago"


def progress(worker: WorkerAtWork) -> str:
    """What its job is doing, in a few words."""
    found = worker.job.progress if worker.job else {}
    done, total = found.get("done"), found.get("total")
    share = f" {done / total:.0%}" if _is_number(done) and _is_number(total) and total else ""
    return f"{found.get('phase') or 'starts'}{share} {found.get('note') or ''}".strip()


def _is_number(value: object) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def figure(rig: ShownRig) -> GoldenFigure | None:
    """The speeds of a rig's runs; None where none was measured or nothing is known to compare."""
    measured = [run for run in reversed(rig.runs) if run.decode_tps is not None]
    golden = rig.golden
    if not measured or golden is None or golden.low is None or golden.high is None:
        return None
    speeds = [run.decode_tps or 0.0 for run in measured]
    low, high = min(*speeds, golden.low), max(*speeds, golden.high)
    room = HEIGHT - 2 * EDGE

    def height(speed: float) -> float:
        return round(HEIGHT - EDGE - room * (speed - low) / ((high - low) or 1.0), 1)

    step = (WIDTH - 2 * EDGE) / max(1, len(speeds) - 1)
    top = height(golden.high)
    return GoldenFigure(
        spots=tuple(
            Spot(
                round(EDGE + step * place, 1),
                height(speed),
                Outcome(run.outcome) in health.GOOD,
            )
            for place, (run, speed) in enumerate(zip(measured, speeds, strict=True))
        ),
        band_y=top,
        band_height=round(height(golden.low) - top, 1),
        words=f"Runs of the golden of {rig.name} in tokens per second, oldest first: "
        + ", ".join(f"{speed:.1f}" for speed in speeds)
        + f". The band is {golden.low:.1f} to {golden.high:.1f}.",
    )


def _facts(rig: ShownRig) -> tuple[tuple[str, str], ...]:
    names = [name for name in SHOWN_FACTS if rig.facts.get(name) not in (None, "", [])]
    return tuple((name.replace("_", " "), _said(rig.facts[name])) for name in names)


def _said(value: object) -> str:
    return ", ".join(str(each) for each in value) if isinstance(value, list) else str(value)
