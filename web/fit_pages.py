"""The page of what fits: a wish's answer, and estimates beside what boots said; pure values."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from jobs.fit.amounts import Band, mib
from jobs.fit.estimate import Estimate, Fit
from jobs.fit.lessons import Lesson, corrections, lessons
from jobs.fit.residuals import Error, Residual, error, errors
from jobs.fit_answers import FitAnswer
from jobs.known_engines import STATES
from jobs.store.known_models import KnownModel
from jobs.store.memories import Heard
from jobs.store.weight_standings import ABSENT, Standing
from web import words
from web.fit_wish import Wish
from web.pages import Page

MOST_LAYOUTS = 8
"""Layouts shown of one engine and architecture; more teach all the same."""

MARKS = {Fit.FITS: "good", Fit.DOES_NOT_FIT: "bad", Fit.TOO_CLOSE: "warn"}
MMPROJ = "mmproj"
BESIDE = frozenset({"drafter", "mtp_head", MMPROJ})
"""Roles of files that run beside a target and never alone."""

RIVALRY = ("the larger counts", "shares the buffer")


@dataclass(frozen=True)
class Row:
    """One line of an estimate in MiB."""

    name: str
    loaded: str
    filled: str
    low: str
    high: str
    basis: str = ""
    note: str = ""
    rivals: tuple[tuple[str, str, str], ...] = ()


@dataclass(frozen=True)
class Shown:
    """An answered wish; `mark` is the colour of its verdict."""

    sentence: str
    mark: str
    largest: str
    pinned: str
    engine: str
    source: str
    rows: tuple[Row, ...]
    sums: tuple[Row, ...]
    notes: tuple[str, ...]
    obstacles: tuple[str, ...] = ()


@dataclass(frozen=True)
class Compared:
    """A line of a boot: estimated, measured, how far off, and corrected by all other boots."""

    name: str
    estimated: str
    measured: str | None
    off: float | None
    corrected: str | None


@dataclass(frozen=True)
class LayoutLines:
    """Boots of one layout that said the same."""

    lesson: Lesson
    asked: str
    lines: tuple[Compared, ...]


@dataclass(frozen=True)
class Subject:
    """What boots taught about one engine and architecture; `more` layouts are not shown.

    `error` is the mean over all lines that were measured, `errors` that of each line alone, and
    `unmeasured` are the lines that no boot said anything of.
    """

    engine: str
    architecture: str
    error: Error | None
    errors: tuple[tuple[str, Error], ...]
    unmeasured: tuple[str, ...]
    layouts: tuple[LayoutLines, ...]
    more: int


@dataclass(frozen=True)
class Choices:
    """What the form offers."""

    targets: tuple[str, ...]
    drafters: tuple[str, ...]
    projectors: tuple[str, ...]
    engines: tuple[str, ...]


def fit(
    models: Sequence[KnownModel],
    engines: Sequence[str],
    heard: Heard,
    *,
    known: Sequence[Lesson] | None = None,
    wish: Wish | None = None,
    given: FitAnswer | None = None,
    stands: Mapping[int, Standing] | None = None,
) -> Page:
    """The page; without a wish there is no form, as in the static export."""
    known = lessons(heard.boots) if known is None else known
    subjects = subjects_of(known)
    taught = {subject.engine for subject in subjects}
    return Page(
        "fit.html",
        "fit.html",
        "Fit",
        {
            "wish": wish,
            "choices": choices(models, engines),
            "given": shown(given) if given else None,
            "files": [(each, (stands or {}).get(each.id or 0, ABSENT)) for each in models],
            "subjects": subjects,
            "unmeasured": [state.title for state in STATES if state.title not in taught],
            "shapeless": heard.shapeless,
        },
    )


def choices(models: Sequence[KnownModel], engines: Sequence[str]) -> Choices:
    """Models by role, as far as their header was read; engines by name."""
    ready = [each for each in models if each.shape is not None]
    return Choices(
        targets=tuple(each.name for each in ready if each.role not in BESIDE),
        drafters=tuple(each.name for each in ready if each.role != MMPROJ),
        projectors=tuple(each.name for each in ready if each.role == MMPROJ),
        engines=(*(state.title for state in STATES), *engines),
    )


def shown(given: FitAnswer) -> Shown:
    """The answer in words and MiB."""
    found, verdict = given.found, given.verdict
    state = found.setup.state
    return Shown(
        sentence=words.sentence(verdict.sentence),
        mark=MARKS[Fit.DOES_NOT_FIT if given.obstacles else verdict.fit],
        largest=words.sentence(given.sentence_of_largest),
        pinned=mib(found.host.high),
        engine=state.title,
        source=state.source,
        rows=tuple(
            _row(
                line.name,
                line.loaded,
                line.filled,
                basis=line.basis.value,
                note=line.note,
                rivals=tuple(
                    (name, mib(size), word)
                    for (name, size), word in zip(
                        sorted(line.rivals, key=lambda rival: -rival[1]), RIVALRY, strict=False
                    )
                ),
            )
            for line in found.components
        ),
        sums=(
            _row("in all", found.loaded, found.filled),
            _row("usable", verdict.usable, verdict.usable),
        ),
        notes=found.notes,
        obstacles=tuple(words.sentence(each) for each in given.obstacles),
    )


def subjects_of(known: Sequence[Lesson]) -> tuple[Subject, ...]:
    """Lessons by engine and architecture, in the order of their names."""
    groups: dict[tuple[str, str], list[Lesson]] = {}
    for lesson in known:
        groups.setdefault(lesson.subject, []).append(lesson)
    return tuple(_subject(groups[key]) for key in sorted(groups))


def _subject(group: Sequence[Lesson]) -> Subject:
    engine, architecture = group[0].subject
    taught = [lesson.residuals for lesson in group if lesson.residuals]
    layouts = tuple(_layout(lesson, group) for lesson in group[:MOST_LAYOUTS])
    said = {each.component for residuals in taught for each in residuals}
    asked = dict.fromkeys(
        name for lesson in group if lesson.found for name in _likely(lesson.found)
    )
    return Subject(
        engine=engine,
        architecture=architecture,
        error=error(taught),
        errors=tuple(errors(taught).items()),
        unmeasured=tuple(name for name in asked if name not in {*said, "growth"}),
        layouts=layouts,
        more=len(group) - len(layouts),
    )


def _layout(lesson: Lesson, group: Sequence[Lesson]) -> LayoutLines:
    asked = lesson.newest.layout
    kv = asked.cache_key
    if asked.cache_value != kv:
        kv = f"{kv}/{asked.cache_value}"
    text = f"context {asked.context_tokens}, kv {kv}, batch {asked.batch}, ubatch {asked.ubatch}"
    return LayoutLines(lesson, text, tuple(_compared(lesson, group)))


def _compared(lesson: Lesson, group: Sequence[Lesson]) -> list[Compared]:
    if lesson.found is None:
        return []
    measured = {each.component: each for each in lesson.residuals}
    others = {each.component for other in group if other is not lesson for each in other.residuals}
    better = _likely(corrections(group, without=lesson)(lesson.found))
    return [
        _line(name, likely, measured.get(name), better[name] if name in others else None)
        for name, likely in _likely(lesson.found).items()
        if name != "growth" and (name in measured or not lesson.on_host)
    ]


def _line(name: str, likely: int, seen: Residual | None, better: int | None) -> Compared:
    return Compared(
        name=name,
        estimated=_fine(likely),
        measured=_fine(seen.measured) if seen else None,
        off=likely / seen.measured - 1 if seen and seen.measured else None,
        corrected=_fine(better) if better is not None else None,
    )


def _likely(found: Estimate) -> dict[str, int]:
    return {line.name: line.loaded.likely for line in found.components}


def _fine(size_bytes: int) -> str:
    """MiB with two places where they matter: small models have small buffers."""
    exact = size_bytes / 2**20
    return mib(size_bytes) if exact >= 1000 else f"{exact:.2f}"


def _row(name: str, loaded: Band, filled: Band, **more: Any) -> Row:
    return Row(
        name,
        loaded=mib(loaded.likely),
        filled=mib(filled.likely),
        low=mib(filled.low),
        high=mib(filled.high),
        **more,
    )
