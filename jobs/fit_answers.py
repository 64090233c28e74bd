"""What a wish is answered: lines, verdict, largest contexts, obstacles, what boots taught; pure."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any

from jobs.fit.component import Component
from jobs.fit.estimate import Estimate, Judgement, estimate, judge, largest_context
from jobs.fit.lessons import Lesson, corrections, taught_by, taught_sentence
from jobs.fit.setup import Setup
from jobs.pairing import Answer, pair


@dataclass(frozen=True)
class FitAnswer:
    """The estimate with its verdict; `surely` and `likely` are the largest contexts that fit.

    `obstacles` are sentences: why these files would not run at all, whatever the card has.
    """

    found: Estimate
    verdict: Judgement
    surely: int | None
    likely: int | None
    taught: int
    sentence_of_largest: str
    obstacles: tuple[str, ...] = ()


def answer(setup: Setup, known: Sequence[Lesson] | None = None) -> FitAnswer:
    """Judge a wish, corrected by the lessons about its engine and architecture.

    With None nobody asked for a correction, and nothing is said of it.
    """
    correct = corrections(known or ())
    found = correct(estimate(setup))
    taught = taught_by(known or (), setup)
    notes = list(found.notes)
    if known is not None:
        notes.append(taught_sentence(known, setup))
    found = replace(found, notes=tuple(notes))
    surely = largest_context(setup, correct=correct)
    likely = largest_context(setup, surely=False, correct=correct)
    sentence = _largest_sentence(surely, likely, known=not setup.unsaid)
    return FitAnswer(found, judge(found), surely, likely, taught, sentence, _obstacles(setup))


def as_json(given: FitAnswer) -> dict[str, Any]:
    """The answer for programs; sizes in bytes."""
    found, verdict = given.found, given.verdict
    state = found.setup.state
    return {
        "verdict": verdict.fit.value,
        "deciding": verdict.deciding,
        "sentence": verdict.sentence,
        "engine": {"state": state.title, "source": state.source},
        "cache_types": list(found.setup.types.both),
        "context": found.setup.context,
        "laid_out": found.setup.cells,
        "bytes": {
            "loaded": asdict(found.loaded),
            "filled": asdict(found.filled),
            "usable": asdict(verdict.usable),
            "pinned": asdict(found.host),
        },
        "components": [_line_as_json(line) for line in found.components],
        "largest_context": {"surely": given.surely, "likely": given.likely},
        "corrected_by_boots": given.taught,
        "obstacles": list(given.obstacles),
        "notes": list(found.notes),
    }


def _line_as_json(line: Component) -> dict[str, Any]:
    return {**asdict(line), "basis": line.basis.value, "rivals": dict(line.rivals)}


def _obstacles(setup: Setup) -> tuple[str, ...]:
    found = pair(setup.target, state=setup.state, drafter=setup.drafter, projector=setup.projector)
    return tuple(
        f"would not run as asked: {each.sentence}"
        for each in found.findings
        if each.answer is Answer.INCOMPATIBLE
    )


def _largest_sentence(surely: int | None, likely: int | None, *, known: bool) -> str:
    if not known:
        return "largest context that fits: not known"
    if likely is None:
        return "largest context that fits: none"
    sure = "none" if surely is None else f"{surely:,} tokens"
    return f"largest context that fits: {sure} at the worst, likely {likely:,} tokens"
