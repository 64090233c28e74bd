"""Benches that an event could lead to, before rules, history and budgets have their say; pure."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from enum import StrEnum

from jobs.model import BuildTarget, Lane, Trust
from jobs.planner import Weights
from jobs.planning.chains import BenchWish, Chain, Files, chain
from jobs.planning.rules import Question
from jobs.planning.world import Event, KnownEngine, KnownFile, KnownRevision, KnownStack, World
from jobs.scenarios import Scenario, all_rungs


class Why(StrEnum):
    """Why something was not queued."""

    TRUST = "trust"
    RETIRED = "retired"
    FAMILY = "family"
    NO_REVISION = "no revision"
    NO_STACK = "no stack"
    NO_RIG = "no rig"
    MODEL = "model file"
    PAIRING = "pairing"
    DOES_NOT_FIT = "does not fit"
    BEYOND = "beyond the context"
    TRIED = "tried already"
    BUILD_FAILED = "build failed"
    NOT_NEEDED = "not needed"
    NEGATIVE = "negative"
    RULE = "rule"
    BUDGET = "over budget"
    REPLACED = "replaced"
    UNREADABLE = "not understood"


@dataclass(frozen=True)
class LeftOut:
    """Something that was not queued; `identity` tells it from the others of its event."""

    identity: str
    what: str
    why: Why
    detail: str
    value: float | None = None


@dataclass(frozen=True)
class Draft:
    """One bench that could be queued.

    `trial` says what cannot be told of it beforehand, `baseline` is the same question of the
    revision that a first measurement would be compared with. `build_only` asks for no more than
    the artifact. `place` is the how-manieth scenario of its stack it is.
    """

    question: Question
    chain: Chain
    what: str
    source: str
    place: int = 1
    trial: str = ""
    baseline: Chain | None = None
    build_only: bool = False


def obstacle(engine: KnownEngine) -> LeftOut | None:
    """Why nothing of an engine may be queued by itself."""
    name = engine.name
    why, detail = Why.TRUST, ""
    if engine.retired:
        why, detail = Why.RETIRED, f"{name} is no longer watched"
    elif engine.trust is Trust.NEVER:
        detail = f"{name} is never built"
    elif not engine.drivable:
        why, detail = Why.FAMILY, f"the family {engine.family} cannot be built yet"
    elif not engine.targets:
        why, detail = Why.NO_RIG, f"{name} names no [[engine.build]]"
    return LeftOut(f"engine:{name}", f"engine {name}", why, detail) if detail else None


def of_engine(event: Event, world: World) -> Iterator[Draft | LeftOut]:
    """Every stack of the event's engine, at the event's revision or else the newest."""
    engine = world.engines.get(event.engine)
    if engine is None:
        return
    if found := obstacle(engine):
        yield found
        return
    revision = event.revision or engine.newest
    if revision is None:
        detail = f"no revision of {engine.name} is known"
        yield LeftOut(f"engine:{engine.name}", f"engine {engine.name}", Why.NO_REVISION, detail)
        return
    mine = [stack for stack in world.stacks if stack.engine == engine.name]
    if not mine:
        detail = f"no [[stack]] names {engine.name}"
        yield LeftOut(f"engine:{engine.name}", f"engine {engine.name}", Why.NO_STACK, detail)
    wanted = [stack for stack in mine if _concerns(event, stack, mine)]
    source = f"engine:{engine.name}"
    for stack in wanted or mine:
        for target in engine.targets:
            for draft in of_stack(event, revision, target, stack, source=source):
                yield draft if wanted or isinstance(draft, LeftOut) else _built_only(draft)


def _built_only(draft: Draft) -> Draft:
    return replace(draft, build_only=True, baseline=None)


def _concerns(event: Event, stack: KnownStack, mine: list[KnownStack]) -> bool:
    """Whether an event is about that stack; most are about all of an engine."""
    if event.kind == "fork_capability_changed":
        return bool(_words(stack) & _learned(event))
    if event.linked is not None:
        named = {each.name for each in mine} & set(event.linked.replace(",", " ").split())
        return not named or stack.name in named
    return True


def _learned(event: Event) -> frozenset[str]:
    """Names that the engine understands now, without their kind."""
    new = event.facts.get("new")
    words = new if isinstance(new, list) else []
    return frozenset(str(word).partition(":")[2].lower() for word in words)


def _words(stack: KnownStack) -> frozenset[str]:
    """Names that a stack needs to be understood: cache types, speculation, flags, architectures."""
    asked = {str(value).lower() for key, value in stack.intent.items() if key != "context"}
    asked |= {f"draft-{word}" for word in asked}
    files = (stack.target, stack.drafter)
    archs = {each.shape.architecture for each in files if each and each.shape}
    return frozenset(asked | set(stack.flags) | archs)


def of_stack(
    event: Event,
    revision: KnownRevision,
    target: BuildTarget,
    stack: KnownStack,
    *,
    source: str,
    trial: str = "",
    published: KnownFile | None = None,
) -> Iterator[Draft | LeftOut]:
    """A stack on one rig: each of its scenarios, with the same of the parent revision."""
    where = f"{stack.name} on {target.name}"
    if stack.missing or stack.target is None:
        detail = f"the {stack.missing} of {stack.name} is no known model file"
        yield LeftOut(f"stack:{stack.name}", where, Why.MODEL, detail)
        return
    about = published or stack.target
    parent = event.parent if published is None else None
    for place, name, scenario in _series(stack):
        what = f"{where} ({scenario.word})"
        if scenario.context_tokens > stack.context_tokens:
            detail = (
                f"it fills {scenario.filled_tokens} tokens and predicts {scenario.tokens}, "
                f"the context has {stack.context_tokens}"
            )
            yield LeftOut(f"beyond:{where}:{scenario.key}", what, Why.BEYOND, detail)
            continue
        lane = Lane.RETEST if event.low_priority or trial else Lane.FRESH
        baseline = None
        if parent is not None and parent.id != revision.id:
            reason = f"baseline: {parent.value.label}"
            baseline = _chain(parent, target, stack, scenario, lane=Lane.BACKFILL, reason=reason)
        yield Draft(
            question=Question(
                engine=revision.value.engine,
                stack=stack.name,
                rig=target.name,
                scenario=name,
                role=about.role,
                model_class=about.model_class,
            ),
            chain=_chain(revision, target, stack, scenario, lane=lane, reason=event.title),
            what=what,
            source=source,
            place=place,
            trial=trial,
            baseline=baseline,
        )


def _series(stack: KnownStack) -> Iterator[tuple[int, str, Scenario]]:
    """All that is a series of its own, with place and name among the stack's scenarios."""
    for place, name in enumerate(stack.scenarios, start=1):
        if (scenario := stack.scenario(name)) is not None:
            yield from ((place, name, each) for each in all_rungs(scenario))


def _chain(
    revision: KnownRevision,
    target: BuildTarget,
    stack: KnownStack,
    scenario: Scenario,
    *,
    lane: Lane,
    reason: str,
) -> Chain:
    wish = BenchWish(
        rig=target.name,
        scenario=scenario,
        stack=stack.name,
        context_tokens=stack.context_tokens,
        intent=stack.intent,
        flags=stack.flags,
        env=stack.env,
    )
    files = Files(
        target=_weights(stack.target),
        drafter=stack.drafter.weights if stack.drafter else None,
        projector=stack.projector.weights if stack.projector else None,
    )
    return chain(revision.value, revision.id, target, files, wish, lane=lane, reason=reason)


def _weights(file: KnownFile | None) -> Weights:
    if file is None:
        raise ValueError("a stack without a target is left out before it is asked")
    return file.weights
