"""What is done about which kind of event, as data: the first rule that fits decides; pure."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from enum import StrEnum

from jobs.model import Lane


class Do(StrEnum):
    """What a rule asks for; `rerun` is a bench of what was tried before as well."""

    BUILD = "build"
    BENCH = "bench"
    RERUN = "rerun"
    NOTHING = "nothing"


LANES = {lane.name.lower(): lane for lane in (Lane.FRESH, Lane.RETEST, Lane.BACKFILL)}
"""The lanes a rule may name; the others belong to people and to doubts."""

MOST_PRIORITY = 48


@dataclass(frozen=True)
class Question:
    """What a rule looks at of one bench that could be queued."""

    engine: str
    stack: str
    rig: str
    scenario: str
    role: str
    model_class: str


@dataclass(frozen=True)
class Rule:
    """Benches of an event of kind `on` that fit every filter; an empty filter fits all."""

    name: str
    on: str
    do: Do
    engines: tuple[str, ...] = ()
    stacks: tuple[str, ...] = ()
    rigs: tuple[str, ...] = ()
    scenarios: tuple[str, ...] = ()
    roles: tuple[str, ...] = ()
    model_classes: tuple[str, ...] = ()
    lane: Lane | None = None
    priority: int = 0

    def fits(self, kind: str, asked: Question) -> bool:
        """Whether this rule is about that bench of such an event."""
        pairs: Sequence[tuple[tuple[str, ...], str]] = (
            (self.engines, asked.engine),
            (self.stacks, asked.stack),
            (self.rigs, asked.rig),
            (self.scenarios, asked.scenario),
            (self.roles, asked.role),
            (self.model_classes, asked.model_class),
        )
        return kind == self.on and all(not only or value in only for only, value in pairs)


FILTERS = ("engines", "stacks", "rigs", "scenarios", "roles", "model_classes")

_SHIPPED = {
    "release": Do.BENCH,
    "fork_pushed": Do.BENCH,
    "branch_created": Do.BENCH,
    "upstream_synced": Do.BENCH,
    "fork_capability_changed": Do.BENCH,
    "drafter_published": Do.BENCH,
    "target_published": Do.BENCH,
    "mtp_variant_published": Do.BENCH,
    "hf_files_changed": Do.BENCH,
    "issue_closed": Do.RERUN,
}
DEFAULT_RULES = tuple(Rule(f"default:{kind}", kind, do) for kind, do in _SHIPPED.items())
"""What happens where no rule of a watch list says otherwise; of other kinds nothing comes."""


def deciding(rules: Iterable[Rule], kind: str, asked: Question) -> Rule | None:
    """The first rule that fits, those of the watch lists before the shipped ones."""
    return next((rule for rule in (*rules, *DEFAULT_RULES) if rule.fits(kind, asked)), None)


def is_about(rules: Iterable[Rule], kind: str) -> bool:
    """Whether anything could come of an event of that kind."""
    return any(rule.on == kind for rule in (*rules, *DEFAULT_RULES))
