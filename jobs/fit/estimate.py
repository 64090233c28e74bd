"""Puts the lines of a wish together and judges them against a card; refuses false certainty."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from enum import StrEnum

from jobs.fit import beside, buffers, caches
from jobs.fit.amounts import GIB, NOTHING, Band, Basis
from jobs.fit.component import Component
from jobs.fit.formats import CONTEXT_STEP
from jobs.fit.setup import MOST_TOKENS, Setup
from jobs.known_engines import EngineState

UNBOUNDED_CONTEXT = 2**20
"""How far the largest context is looked for where the header names no trained length."""


class Fit(StrEnum):
    """Whether a wish fits a card."""

    FITS = "fits"
    TOO_CLOSE = "too close to call"
    DOES_NOT_FIT = "does not fit"


@dataclass(frozen=True)
class Estimate:
    """What a wish takes: lines, sums, pinned host memory and what was not modelled."""

    setup: Setup
    components: tuple[Component, ...]
    host: Band
    notes: tuple[str, ...]

    @property
    def loaded(self) -> Band:
        """After load."""
        return sum((each.loaded for each in self.components), NOTHING)

    @property
    def filled(self) -> Band:
        """With the context filled; never less than after load."""
        return sum((each.filled for each in self.components), NOTHING)


@dataclass(frozen=True)
class Judgement:
    """The verdict, the component that decides it, and the sentence that says so."""

    fit: Fit
    deciding: str
    sentence: str
    usable: Band


Correct = Callable[[Estimate], Estimate]


def estimate(setup: Setup) -> Estimate:
    """All that a wish takes of the card."""
    lines = [
        beside.weights(setup.target, "weights"),
        caches.cache(setup),
        caches.recurrent(setup),
        buffers.compute(setup),
        buffers.work_copy(setup),
        buffers.base(setup),
        buffers.growth(setup),
    ]
    if setup.drafter is not None:
        lines += beside.drafting(setup, setup.drafter)
    if setup.projector is not None:
        lines += beside.projecting(setup.projector)
    components = tuple(line for line in lines if line is not None)
    return Estimate(setup, components, buffers.host_bytes(setup), tuple(_notes(setup)))


def judge(found: Estimate) -> Judgement:
    """Fits only if the most it can take fits what is surely usable; and the other way round.

    Where a header leaves out what memory depends on, the most is not known and nothing fits surely.
    """
    usable, need = found.setup.card.usable, found.filled
    if need.high <= usable.low and not found.setup.unsaid:
        fit = Fit.FITS
    elif need.low > usable.high:
        fit = Fit.DOES_NOT_FIT
    else:
        fit = Fit.TOO_CLOSE
    deciding = _deciding(found, usable)
    if fit is Fit.TOO_CLOSE and found.setup.unsaid:
        words = f"too close to call: {_missing(found.setup)}"
        return Judgement(fit, deciding.name, words, usable)
    return Judgement(fit, deciding.name, _sentence(fit, deciding, need, usable), usable)


def largest_context(
    setup: Setup, *, surely: bool = True, correct: Correct = lambda found: found
) -> int | None:
    """The largest context that fits, in steps of 256; `surely` at the worst, else likely.

    None where even one step does not fit, and where a header leaves the most open. The trained
    length bounds the search.
    """
    if setup.unsaid:
        return None
    most = min(setup.target.context_length or UNBOUNDED_CONTEXT, MOST_TOKENS)

    def fits(steps: int) -> bool:
        found = correct(estimate(setup.at(steps * CONTEXT_STEP)))
        usable = setup.card.usable
        if surely:
            return found.filled.high <= usable.low
        return found.filled.likely <= usable.likely

    low, high = 0, max(1, most // CONTEXT_STEP)
    while low < high:
        middle = (low + high + 1) // 2
        if fits(middle):
            low = middle
        else:
            high = middle - 1
    return low * CONTEXT_STEP or None


def _deciding(found: Estimate, usable: Band) -> Component:
    """The line with which the sum passes all the card has, surest lines first; where none does,
    the most doubtful one."""
    total = 0
    for each in sorted(found.components, key=_doubt):
        total += each.filled.likely
        if total > usable.high:
            return each
    return max(found.components, key=lambda each: each.filled.width)


def _doubt(line: Component) -> tuple[int, float]:
    """How unsure a line is: by where it comes from, then by its band against its size."""
    return list(Basis).index(line.basis), line.filled.width / max(1, line.filled.likely)


def _sentence(fit: Fit, deciding: Component, need: Band, usable: Band) -> str:
    taken = f"{_gib(need.likely)} GiB ({_gib(need.low)} to {_gib(need.high)})"
    room = f"{_gib(usable.likely)} GiB ({_gib(usable.low)} to {_gib(usable.high)})"
    if usable.width == 0:
        room = f"{_gib(usable.likely)} GiB"
    if fit is Fit.FITS:
        return f"fits: {taken} of {room} usable, even if '{deciding.name}' takes its most"
    if fit is Fit.DOES_NOT_FIT:
        return f"does not fit: {taken} of {room} usable, '{deciding.name}' is what is too much"
    return f"too close to call: {taken} of {room} usable, '{deciding.name}' decides"


def _missing(setup: Setup) -> str:
    names = ", ".join(setup.unsaid)
    return f"the header does not say {names}, so what is counted is only the least"


def _gib(size_bytes: int) -> str:
    return f"{size_bytes / GIB:.2f}"


def _notes(setup: Setup) -> list[str]:
    notes = list(setup.types.notes)
    trained = setup.target.context_length
    if trained and setup.context > trained:
        notes.append(f"the model was trained for {trained:,} tokens, {setup.context:,} are asked")
    if setup.cells != setup.context:
        notes.append(f"the context is laid out as {setup.cells:,} tokens")
    if setup.unsaid:
        notes.append(_missing(setup))
    if not setup.target.keys_read:
        notes.append("the header was read up to its tokenizer: what stands behind it is not known")
    notes.extend(setup.target.notes)
    notes.append("every layer on the card: a partial offload is not modelled")
    if not setup.target.vocabulary:
        notes.append("the header does not say how many tokens it knows: logits are left out")
    notes.extend(_engine_notes(setup.state))
    return notes


def _engine_notes(state: EngineState) -> list[str]:
    if state.memory_measured:
        return [f"memory of {state.title} was measured with one shape on one card"]
    return [f"memory of {state.title} was not measured: beellama 0.1 is the model"]
