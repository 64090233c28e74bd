"""A person's negative: every name is checked first, then the pre-flight has its say; no guesses."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, cast

from sqlmodel import Session

from jobs import failure_classes, negatives, planner
from jobs.errors import UsageError, did_you_mean
from jobs.negative_tables import NegativeRow
from jobs.payloads import LEAST_CONTEXT, MOST_CONTEXT
from jobs.planning.pairs import speculation_of
from jobs.store import births, catalog, grounds, work, worlds
from jobs.store import negatives as store
from jobs.store.negatives import Said
from jobs.tables import EngineRow, JobRow, ModelFileRow, StackRow

CACHE_TYPE = re.compile(r"[a-z][a-z0-9_]{0,31}", re.ASCII)


@dataclass(frozen=True)
class Told:
    """What a person says does not work; what is not said is taken from the engine's stack."""

    engine: str
    rig: str
    target: str
    context_tokens: int
    failure_class: str
    why: str
    revision: str | None = None
    drafter: str | None = None
    projector: str | None = None
    kv: str | None = None
    scenario: str = negatives.ANY_SCENARIO
    days: float = negatives.DEFAULT_DAYS


@dataclass(frozen=True)
class Added:
    """The negative, the one it follows, and the jobs of a trial that the pre-flight asked for."""

    row: NegativeRow
    follows: int | None
    jobs: Sequence[JobRow] = ()


def add(session: Session, told: Told, now: datetime) -> Added:
    """Let it stand; a `UsageError` leaves nothing written."""
    _check(told)
    work.take_turn(session)
    engine = catalog.engine_named(session, told.engine)
    catalog.rig_named(session, told.rig)
    named = {"target": told.target, "drafter": told.drafter, "projector": told.projector}
    files = {role: catalog.model_named(session, name) for role, name in named.items() if name}
    number = cast(int, engine.id)
    revision = (
        catalog.revision_named(session, engine, told.revision)
        if told.revision
        else grounds.newest_revision(session, number)
    )
    stack = _stack(session, engine, told.target)
    wish = {
        "rig": told.rig,
        "stack": stack.name if stack else f"{engine.name}-{told.rig}",
        "context_tokens": told.context_tokens,
        "intent": _intent(told, files, stack),
        "flags": list(stack.flags) if stack else [],
        "env": dict(stack.env) if stack else {},
    }
    asked = grounds.of_bench(session, engine, revision, files, scenario=told.scenario, wish=wish)
    said = Said(
        outcome="said",
        failure_class=told.failure_class,
        why=told.why,
        source=planner.BY_HAND,
        days=told.days,
    )
    row = store.bear(session, asked, said, now)
    jobs = births.doubt(session, row, asked, now)
    return Added(row, row.follows_id, jobs)


def _check(told: Told) -> None:
    known = failure_classes.known()
    if told.failure_class not in known:
        listed = "forkscout negatives add --help"
        raise UsageError(
            f"{told.failure_class[:80]!r} is no class of failure",
            advice=did_you_mean(told.failure_class[:80], known, listed_by=listed),
        )
    if not LEAST_CONTEXT <= told.context_tokens <= MOST_CONTEXT:
        raise UsageError(
            f"a context of {told.context_tokens} tokens is out of range",
            advice=f"give {LEAST_CONTEXT} to {MOST_CONTEXT:,} tokens",
        )
    if told.kv is not None and not CACHE_TYPE.fullmatch(told.kv):
        raise UsageError(
            f"{told.kv[:80]!r} is no cache type", advice="write it like q8_0 or turbo3"
        )
    if not told.why.strip():
        raise UsageError("a negative needs a reason", advice="say it with --why TEXT")
    if not negatives.LEAST_DAYS <= told.days <= negatives.MOST_DAYS:
        raise UsageError(
            f"{told.days:g} days are out of range",
            advice=f"give an hour (0.042) to {negatives.MOST_DAYS:g} days: nothing is for ever",
        )


def _stack(session: Session, engine: EngineRow, target: str) -> StackRow | None:
    """The engine's stack with that target: it says what was asked besides."""
    stacks = catalog.stacks(session, engine_id=engine.id)
    return next((stack for stack in stacks if stack.target == target), None)


def _intent(told: Told, files: dict[str, ModelFileRow], stack: StackRow | None) -> dict[str, Any]:
    intent = {k: v for k, v in (stack.intent if stack else {}).items() if k != "context"}
    if told.kv:
        intent["kv"] = told.kv
    if "projector" in files:
        intent["vision"] = "on"
    if "drafter" in files:
        intent["speculation"] = speculation_of(worlds.known_file(files["drafter"]).shape)
    return intent
