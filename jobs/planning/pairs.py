"""What a new model file could be benched with: engines that load it, cards that hold it; pure."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any

from jobs.errors import UsageError
from jobs.fit.estimate import Fit, estimate, judge
from jobs.fit.setup import Setup
from jobs.fit.shape import Shape
from jobs.pairing import DRAFTERS_ONLY, HEADS_ONLY, Answer, pair
from jobs.planning.drafts import Draft, LeftOut, Why, obstacle, of_stack
from jobs.planning.world import Event, KnownEngine, KnownFile, KnownRevision, KnownStack, World

LONGEST_STACK = 80
DRAFTERS = frozenset({"drafter", "mtp_head"})


def of_file(event: Event, world: World) -> Iterator[Draft | LeftOut]:
    """Every engine with every setup that the published file could be a part of."""
    published = event.published
    if published is None:
        return
    name = published.weights.name
    if published.shape is None and published.role != "mmproj":
        yield LeftOut(f"file:{name}", name, Why.MODEL, published.fault or "its header was not read")
        return
    for engine in world.engines.values():
        if found := obstacle(engine):
            if not engine.retired:
                yield found
            continue
        if engine.newest is None:
            detail = f"no revision of {engine.name} is known"
            yield LeftOut(f"engine:{engine.name}", f"engine {engine.name}", Why.NO_REVISION, detail)
            continue
        yield from _of_engine(event, world, engine, engine.newest, published)


def _of_engine(
    event: Event,
    world: World,
    engine: KnownEngine,
    revision: KnownRevision,
    published: KnownFile,
) -> Iterator[Draft | LeftOut]:
    mine = [stack for stack in world.stacks if stack.engine == engine.name and stack.target]
    tries = list(_tries(published, mine, world.files))
    if not mine:
        detail = f"no [[stack]] of {engine.name} says how to try it"
        yield LeftOut(f"engine:{engine.name}", f"engine {engine.name}", Why.NO_STACK, detail)
    owner = published.repo.partition("/")[0]
    source = f"hub:{owner}" if owner else f"engine:{engine.name}"
    for stack in tries:
        for target in engine.targets:
            judged = _judged(stack, target.name, revision, world)
            if isinstance(judged, LeftOut):
                yield judged
                continue
            yield from of_stack(
                event,
                revision,
                target,
                stack,
                source=source,
                trial=judged.doubt,
                published=published,
            )


def _tries(
    published: KnownFile, mine: list[KnownStack], files: tuple[KnownFile, ...]
) -> Iterator[KnownStack]:
    """Setups that this file could be a part of, each once: an engine's own with one file changed.

    A drafter or a projector goes to the targets that are benched already. A target is tried alone
    as the engine's first stack is, and with each drafter that is known.
    """
    if published.role in DRAFTERS:
        for stack in _apart(mine):
            yield _with_drafter(stack, published)
    elif published.role == "mmproj":
        for stack in mine:
            if stack.projector is not None and published.repo in _repos(stack):
                yield replace(stack, name=_named(stack, published), projector=published)
    elif mine:
        alone = _alone(mine[0], published)
        yield alone
        for drafter in files:
            if drafter.role in DRAFTERS and drafter.shape is not None:
                yield _with_drafter(alone, drafter)


def _repos(stack: KnownStack) -> frozenset[str]:
    files = (stack.target, stack.projector)
    return frozenset(each.repo for each in files if each and each.repo)


def _apart(stacks: list[KnownStack]) -> Iterator[KnownStack]:
    """One stack of those that differ in nothing but their drafter and how it drafts."""
    seen: list[Mapping[str, Any]] = []
    for stack in stacks:
        intent = {key: value for key, value in stack.intent.items() if key != "speculation"}
        files = [each.weights.sha256 if each else "" for each in (stack.target, stack.projector)]
        key = {
            "files": files,
            "intent": intent,
            "context": stack.context_tokens,
            "flags": stack.flags,
            "env": stack.env,
        }
        if key not in seen:
            seen.append(key)
            yield stack


def _alone(stack: KnownStack, target: KnownFile) -> KnownStack:
    intent = {
        key: value for key, value in stack.intent.items() if key not in ("speculation", "vision")
    }
    heads = target.shape.nextn_layers if target.shape else 0
    if heads:
        intent["speculation"] = "mtp"
    return replace(
        stack,
        name=_named(stack, target),
        target=target,
        drafter=None,
        projector=None,
        wants_drafter=False,
        wants_projector=False,
        intent=intent,
    )


def _with_drafter(stack: KnownStack, drafter: KnownFile) -> KnownStack:
    intent = {**stack.intent, "speculation": speculation_of(drafter.shape)}
    return replace(stack, name=_named(stack, drafter), drafter=drafter, intent=intent)


def _named(stack: KnownStack, file: KnownFile) -> str:
    short = file.weights.name.rpartition("/")[2].rpartition(":")[2]
    return f"{stack.name}+{short}"[:LONGEST_STACK]


def speculation_of(shape: Shape | None) -> str:
    """How a drafter of that form drafts, in the word of intents."""
    if shape is None:
        return "draft"
    if shape.drafter is not None:
        return "dflash"
    if shape.architecture in HEADS_ONLY:
        return "mtp"
    return shape.architecture if shape.architecture in DRAFTERS_ONLY else "draft"


@dataclass(frozen=True)
class _Possible:
    """A setup that nothing speaks against; `doubt` is what cannot be told of it."""

    doubt: str = ""


def _judged(
    stack: KnownStack, rig: str, revision: KnownRevision, world: World
) -> _Possible | LeftOut:
    """Whether the engine loads these files together and the rig's card holds them."""
    what = f"{stack.name} on {rig}"
    identity = f"pair:{stack.name}:{rig}:{revision.value.commit[:12]}"
    shapes = [
        each.shape if each else None for each in (stack.target, stack.drafter, stack.projector)
    ]
    target, drafter, projector = shapes
    if target is None:
        detail = "the header of its target was not read"
        return LeftOut(identity, what, Why.MODEL, detail)
    found = pair(target, state=revision.state, drafter=drafter, projector=projector)
    first = found.findings[0]
    if found.answer is Answer.INCOMPATIBLE:
        return LeftOut(identity, what, Why.PAIRING, first.sentence)
    doubts = [first.sentence] if found.answer is Answer.CANNOT_TELL else []
    card = world.cards.get(rig)
    if card is None:
        return _Possible("; ".join([*doubts, f"the memory of {rig} is not known"]))
    kv = str(stack.intent.get("kv", "f16"))
    try:
        setup = Setup(
            target=target,
            card=card,
            context=stack.context_tokens,
            state=revision.state,
            key=kv,
            value=kv,
            batch=int(stack.intent.get("batch", 2048)),
            ubatch=int(stack.intent.get("ubatch", 512)),
            drafter=drafter,
            projector=projector,
        )
        verdict = judge(estimate(setup))
    except UsageError as fault:
        return LeftOut(identity, what, Why.PAIRING, fault.detail)
    if verdict.fit is Fit.DOES_NOT_FIT:
        detail = verdict.sentence.removeprefix(f"{verdict.fit.value}: ")
        return LeftOut(identity, what, Why.DOES_NOT_FIT, detail)
    if verdict.fit is Fit.TOO_CLOSE:
        doubts.append(verdict.sentence)
    return _Possible("; ".join(doubts))
