"""What a boot as a whole says against its single runs; pure, it never makes a run better."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import groupby

from jobs.dialect.settings import Asked, shortfall
from jobs.model import BootFacts, Effective, Measurement, Validity

OUTRANKED = frozenset({Validity.OK, Validity.CACHED, Validity.TOO_SHORT})
"""What a run may be worth that a doubt about its whole boot stands above."""
SPREADLESS_RUNS = 3  # whose times agree to the last digit: a server that does not measure


def judged(
    measurements: Sequence[Measurement],
    *,
    asked: Asked,
    effective: Effective,
    facts: BootFacts,
    held_bytes: int | None = None,
) -> tuple[Measurement, ...]:
    """The runs with every doubt that settings, log and each other cast on them."""
    runs = compared(measurements, speculates=asked.speculation)
    short = shortfall(asked, effective, facts, held_bytes=held_bytes)
    return tuple(_doubted(run, *short) for run in runs) if short else runs


def compared(measurements: Sequence[Measurement], *, speculates: bool) -> tuple[Measurement, ...]:
    """The runs with what they say against each other, and against the word that they draft."""
    suspicious = set(_spreadless(measurements))
    return tuple(
        _compared(each, speculates, is_spreadless=each.scenario in suspicious)
        for each in measurements
    )


def _compared(run: Measurement, speculates: bool, *, is_spreadless: bool) -> Measurement:
    if is_spreadless and not run.warmup:
        why = f"{SPREADLESS_RUNS} runs or more took exactly the same time"
        run = _doubted(run, Validity.INCONSISTENT, why)
    if speculates and not run.draft_n:
        run = _doubted(run, Validity.SPEC_INACTIVE, "speculation was asked and nothing was drafted")
    return run


def _doubted(run: Measurement, validity: Validity, why: str) -> Measurement:
    """A doubt about the boot comes first; the numbers stay."""
    worth = validity if run.validity in OUTRANKED else run.validity
    return replace(run, validity=worth, reason="; ".join(r for r in (why, run.reason) if r))


def _spreadless(measurements: Sequence[Measurement]) -> Iterator[str]:
    measured = [m for m in measurements if not m.warmup and m.predicted_ms]
    for scenario, runs in groupby(measured, key=lambda run: run.scenario):
        times = [run.predicted_ms for run in runs]
        if len(times) >= SPREADLESS_RUNS and len(set(times)) == 1:
            yield scenario
