"""From a step that failed to the cause its log names; all that it decides is in the table."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from jobs.dialect.build_failures import FETCH, LIMITS
from jobs.engines.base import Diagnosis, Engine, classify
from jobs.errors import JobFailure, Permanent, Transient
from workers.steps import StepFailed

DESCRIBE = "describe"
READ_BYTES = 4 * 2**20  # of one step's log, from its end: ninja stops soon after what went wrong
SHOWN_CHARS = 300
COLOUR = re.compile(r"\x1b\[[0-9;]{0,20}m")  # compilers and engines paint, also into files


def explained(failure: StepFailed, family: Engine, *, offset: int) -> JobFailure:
    """The failure with its cause, where a rule knows what the log says since `offset`."""
    phase = failure.phase
    if failure.failure_class != "exit":
        return _with(failure, classify(failure.detail, LIMITS, phase=phase), line=False)
    rules = [rule for rule in family.BUILD_FAILURES if rule.counts_in(phase)]
    if phase == DESCRIBE:
        rules = [*family.FAILURES, *rules]
    found = classify(_written(failure.log, offset), rules)
    if found is not None:
        return _with(failure, found, line=True)
    return _with(failure, classify(failure.detail, rules), line=False)


@contextmanager
def of_source(family: Engine) -> Iterator[None]:
    """Name the cause where the source cannot be brought, if a rule knows what was said."""
    try:
        yield
    except JobFailure:
        raise
    except (Permanent, Transient) as fault:
        found = classify(fault.detail, family.BUILD_FAILURES, phase=FETCH)
        if found is None:
            raise
        raise _failure(fault.detail, found, phase=FETCH) from fault


def _with(failure: StepFailed, found: Diagnosis | None, *, line: bool) -> JobFailure:
    if found is None:
        return failure
    said = f": {found.line[:SHOWN_CHARS]}" if line else ""
    return _failure(f"{failure.detail}{said}", found, phase=failure.phase)


def _failure(detail: str, found: Diagnosis, *, phase: str) -> JobFailure:
    return JobFailure(
        detail,
        failure_class=found.rule.name,
        blame=found.rule.blame,
        phase=phase,
        advice=found.rule.advice,
    )


def _written(log: Path, offset: int) -> str:
    if not log.exists():
        return ""
    with log.open("rb") as file:
        end = file.seek(0, 2)
        file.seek(max(offset, end - READ_BYTES))
        return COLOUR.sub("", file.read().decode(errors="replace"))
