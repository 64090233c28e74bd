"""Boots beside the wishes they were: which lines can be compared, and what they teach; pure."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime

from jobs.errors import UsageError
from jobs.fit.estimate import Correct, Estimate, estimate
from jobs.fit.residuals import Residual, compare, corrected, learn
from jobs.fit.setup import Card, Setup
from jobs.fit.shape import Shape
from jobs.known_engines import EngineState
from jobs.model import BootMemory, Layout
from jobs.terminal import counted

ANY_CARD = Card(total_bytes=0)
"""Lines after load do not depend on how large the card is."""

MOST_NAMED = 4
"""Other engines that were measured with an architecture and are named."""

HOST_ONLY = "it ran on the host: only what a layer keeps of the context can be compared"


@dataclass(frozen=True)
class MeasuredBoot:
    """One start of a server: what was asked, and what its log said of memory."""

    result_id: int
    label: str
    rig: str
    measured_at: datetime
    state: EngineState
    model: str
    shape: Shape
    layout: Layout
    memory: BootMemory
    peak_memory_bytes: int | None = None
    offloaded_layers: int | None = None
    total_layers: int | None = None


@dataclass(frozen=True)
class Lesson:
    """Boots that were asked the same and said the same: heard often, it is still one lesson.

    `found` is None where the wish cannot be estimated; `note` says why, or what is not comparable.
    """

    newest: MeasuredBoot
    boots: int
    found: Estimate | None
    residuals: tuple[Residual, ...]
    note: str = ""

    @property
    def on_host(self) -> bool:
        """Whether nothing of it lay on a card, so that only the cache can be compared."""
        return self.found is not None and self.note == HOST_ONLY

    @property
    def subject(self) -> tuple[str, str]:
        """Whom it teaches about: an engine state and an architecture."""
        return self.newest.state.learned_as, self.newest.shape.architecture


def lessons(boots: Iterable[MeasuredBoot]) -> tuple[Lesson, ...]:
    """What boots, newest first, teach; those that repeat each other count as one."""
    same: dict[object, list[MeasuredBoot]] = {}
    for boot in boots:
        key = (boot.state.learned_as, boot.model, boot.layout, boot.memory, boot.offloaded_layers)
        same.setdefault(key, []).append(boot)
    return tuple(_lesson(group) for group in same.values())


def corrections(known: Sequence[Lesson], *, without: Lesson | None = None) -> Correct:
    """Corrects an estimate by every lesson but one, so that no boot judges what it taught."""
    learned = learn(each for lesson in known if lesson is not without for each in lesson.residuals)
    return lambda found: corrected(found, learned)


def taught_by(known: Sequence[Lesson], setup: Setup) -> int:
    """How many lessons there are about the engine and architecture of a wish."""
    subject = (setup.state.learned_as, setup.target.architecture)
    return sum(bool(each.residuals) and each.subject == subject for each in known)


def taught_sentence(known: Sequence[Lesson], setup: Setup) -> str:
    """What the estimate of a wish owes to boots, in words, and to boots of whom it owes nothing."""
    engine, architecture = setup.state.learned_as, setup.target.architecture
    who = f"{engine} with {architecture[:40]}"
    about = [each for each in known if each.subject == (engine, architecture)]
    taught = [each for each in about if each.residuals]
    if taught:
        lines = dict.fromkeys(each.component for lesson in taught for each in lesson.residuals)
        return f"corrected by {counted(len(taught), 'measured boot')} of {who}: {', '.join(lines)}"
    if about:
        return f"not corrected: {counted(len(about), 'boot')} of {who}, none of them comparable"
    others = {each.subject[0] for each in known if each.subject[1] == architecture}
    if not others:
        return f"not corrected: no boot of {who} was measured"
    named = ", ".join(sorted(others)[:MOST_NAMED])
    return (
        f"not corrected: no boot of {who} was measured, only of {named}; "
        "name that engine to be corrected by its boots"
    )


def _lesson(boots: Sequence[MeasuredBoot]) -> Lesson:
    newest = boots[0]
    layout = newest.layout
    try:
        setup = Setup(
            target=newest.shape,
            card=ANY_CARD,
            context=layout.context_tokens,
            state=newest.state,
            key=layout.cache_key,
            value=layout.cache_value,
            batch=layout.batch,
            ubatch=layout.ubatch,
            sequences=layout.slots,
        )
    except UsageError as fault:
        return Lesson(newest, len(boots), None, (), f"no estimate: {fault.detail}")
    found = estimate(setup)
    offloaded, total = newest.offloaded_layers, newest.total_layers
    if offloaded and total and offloaded < total:
        note = f"only {offloaded} of {total} layers were on the card: not comparable"
        return Lesson(newest, len(boots), found, (), note)
    note = "" if newest.memory.target.weights is not None else HOST_ONLY
    residuals = compare(found, newest.memory, process_bytes=_process(newest.memory))
    return Lesson(newest, len(boots), found, residuals, note)


def _process(memory: BootMemory) -> int | None:
    """What the process held, where the log says what of it was the target's and nobody else's."""
    target = memory.target
    alone = memory.drafter is None and memory.projector is None
    said = None not in (target.weights, target.cache, target.compute)
    return memory.process if alone and said else None
