"""How a line of the failure tables is written."""

from __future__ import annotations

import re
from collections.abc import Sequence

from jobs.model import Blame, FailureRule

ENGINE = Blame.ENGINE
CONFIGURATION = Blame.CONFIGURATION
INFRASTRUCTURE = Blame.INFRASTRUCTURE


def rule(
    name: str,
    pattern: str,
    blame: Blame,
    advice: str,
    *,
    phases: Sequence[str] = (),
    general: bool = False,
) -> FailureRule:
    """A failure class with the pattern that shows it; patterns are unanchored."""
    return FailureRule(name, re.compile(pattern), blame, advice, frozenset(phases), general)
