"""The figures of one result out of all its boots; it judges nothing and stores nothing."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from jobs.compare import BootRuns
from jobs.model import Boot, Validity
from jobs.stats import median


def usable_runs(boots: Sequence[Boot], *, worth: Validity = Validity.OK) -> list[BootRuns]:
    """The decode speeds that may feed a verdict, by boot; boots without any are left out.

    With another `worth` they may be shown, and feed nothing.
    """
    kept = []
    for boot in boots:
        speeds = tuple(
            m.decode_tps
            for m in boot.measurements
            if not m.warmup and m.validity is worth and m.decode_tps
        )
        if speeds:
            kept.append(BootRuns(boot.number, speeds))
    return kept


def gravest(boots: Sequence[Boot]) -> dict[str, Any]:
    """The most frequent validity that is not `ok` among the measured runs, and one reason."""
    bad = [
        m for b in boots for m in b.measurements if not m.warmup and m.validity is not Validity.OK
    ]
    if not bad:
        return {"worst": Validity.OK, "why": ""}
    kinds = [m.validity for m in bad]
    worst = max(sorted(set(kinds)), key=kinds.count)
    return {"worst": worst, "why": next(m.reason for m in bad if m.validity is worst)}


def summary(
    boots: Sequence[Boot], runs: Sequence[BootRuns], *, worth: Validity = Validity.OK
) -> dict[str, Any]:
    """The figures the board shows; None where there is nothing to show."""
    measured = [m for b in boots for m in b.measurements if not m.warmup]
    good = [m for m in measured if m.validity is worth]
    return {
        "decode_tps": _median([boot.speed for boot in runs]),
        "prefill_tps": _median([m.prefill_tps for m in good]),
        "ttft_ms": _median([m.ttft_ms for m in good]),
        "load_seconds": _median([boot.load_seconds for boot in boots]),
        "peak_memory_bytes": max((b.peak_memory_bytes or 0 for b in boots), default=0) or None,
        "boots_used": len(runs),
        "runs_used": sum(len(boot.speeds) for boot in runs),
    }


def _median(values: Sequence[float | None]) -> float | None:
    known = [value for value in values if value is not None]
    return median(known) if known else None
