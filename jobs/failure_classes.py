"""Every class that a failure can have, so that a person can name one; reads no log."""

from __future__ import annotations

from jobs.engines.registry import FAMILIES
from jobs.negatives import DOES_NOT_FIT, TELLING

OF_WORKERS = (
    "arch_mismatch",
    "connection_lost",
    "cpu_limit",
    "crash_depth",
    "crash_first_request",
    "crash_load",
    "crash_request",
    "error_event",
    "exit",
    "file_limit",
    "http_400",
    "http_500",
    "http_503",
    "hung",
    "killed",
    "load_timeout",
    "memory_limit",
    "no_help",
    "output_flood",
    "output_limit",
    "process_limit",
    "silent",
    "stalled",
    "start_failed",
    "timeout",
    "unknown",
    "unsupported",
)
"""What a worker says where no line of a log explains it; workers only write these down."""


def known() -> tuple[str, ...]:
    """All of them by name: of the families' logs, of workers, of results, and of people."""
    of_logs = {rule.name for family in FAMILIES.values() for rule in family.FAILURES}
    of_results = {validity.value for validity in TELLING}
    return tuple(sorted({*of_logs, *of_results, *OF_WORKERS, DOES_NOT_FIT}))
