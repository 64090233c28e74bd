"""How a line of the failure tables is written."""

from __future__ import annotations

import re
from collections.abc import Sequence

from jobs.model import Blame, FailureRule

ENGINE = Blame.ENGINE
CONFIGURATION = Blame.CONFIGURATION
INFRASTRUCTURE = Blame.INFRASTRUCTURE

START = "start"
ARGUMENTS = "arguments"
BIND = "bind"
LOAD = "load"
LOAD_TARGET = "load target"
LOAD_DRAFTER = "load drafter"
LOAD_PROJECTOR = "load projector"
REQUEST = "request"
BOOTING = (START, ARGUMENTS, BIND, LOAD, LOAD_TARGET, LOAD_DRAFTER, LOAD_PROJECTOR)
PHASES = (*BOOTING, REQUEST)
"""Where a server can be when it says such a line, in the order it gets there."""


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
