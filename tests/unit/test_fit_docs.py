"""The page of the memory model shows what the model says, to the figure."""

from __future__ import annotations

from pathlib import Path

import pytest
from support.gguf_files import File
from support.one_autumn import OUTCOMES, models

from jobs.fit.amounts import mib, parse_amount
from jobs.fit.estimate import judge
from jobs.fit.joining import shape_from
from jobs.fit.setup import Card, Setup
from jobs.fit.shape import Shape
from jobs.fit_answers import FitAnswer, answer
from jobs.gguf.reader import Depth, read_header
from jobs.gguf.reading import facts_of
from jobs.known_engines import STATES, state_named

DOCS = Path(__file__).parents[2] / "docs"


@pytest.fixture(scope="module")
def answers() -> dict[str, FitAnswer]:
    """What the memory model says of each wish that the script shows."""
    shapes = {name: _shape(file, name) for name, file in models().items()}
    return {name: _answer(dict(_pairs(words)), shapes) for name, words in OUTCOMES.items()}


def _pairs(words: tuple[str, ...]) -> list[tuple[str, str]]:
    return [(words[at][2:], words[at + 1]) for at in range(0, len(words), 2)]


def _shape(file: File, name: str) -> Shape:
    header = read_header(file.fetch, size_bytes=file.size_bytes, depth=Depth.FULL)
    return shape_from(header, facts_of(header, file_name=name))


def _answer(asked: dict[str, str], shapes: dict[str, Shape]) -> FitAnswer:
    kv = asked.get("kv", "f16")
    setup = Setup(
        target=shapes[asked["target"]],
        card=Card(parse_amount(asked["gpu"], what="gpu")),
        context=int(asked["context"]),
        ubatch=int(asked["ubatch"]),
        state=state_named(asked["engine"]),
        key=kv,
        value=kv,
        drafter=shapes[asked["drafter"]],
        cross_context=int(asked["cross-context"]) if "cross-context" in asked else None,
        projector=shapes[asked["mmproj"]] if "mmproj" in asked else None,
    )
    return answer(setup)


def _lines(text: str) -> list[str]:
    return [" ".join(line.split()) for line in text.splitlines()]


def _held(given: FitAnswer, text: str) -> None:
    """Every row, the sum and the verdict of an answer stand in the text."""
    found = given.found
    rows = [(line.name, line.loaded, line.filled) for line in found.components]
    for name, loaded, filled in [*rows, ("in all", found.loaded, found.filled)]:
        figures = (loaded.likely, filled.likely, filled.low, filled.high)
        row = " ".join((name, *map(mib, figures)))
        assert any(line.startswith(row) for line in _lines(text)), row
    assert given.sentence_of_largest in _lines(text)
    assert judge(found).sentence in _lines(text)


def test_the_table_in_the_docs_is_what_the_model_says(answers):
    """The documented wish, line by line, from the headers that the script writes."""
    last = next(name for name in answers if "ran out" in name)
    _held(answers[last], (DOCS / "models.md").read_text())


@pytest.mark.parametrize("outcome", OUTCOMES)
def test_the_evidence_is_what_the_model_says(answers, outcome):
    """Each of the four outcomes, line by line, and its row in the table above the raw output."""
    text = (DOCS / "evidence" / "models.md").read_text()
    _, _, after = text.partition(f"== {outcome}\n")
    block, _, _ = after.partition("\n== ")
    _held(answers[outcome], block)
    verdict = judge(answers[outcome].found)
    row = f"| {verdict.fit} | "
    figures = verdict.sentence.partition(": ")[2].partition(" of ")[0]
    assert any(row in line and figures in line for line in text.splitlines()), figures
    assert f"| {verdict.deciding} |" in (DOCS / "models.md").read_text()


def test_every_engine_state_is_on_the_page():
    """With the name one types."""
    text = (DOCS / "models.md").read_text().partition("| engine | states")[2]
    for state in STATES:
        row = next(line for line in text.splitlines() if line.startswith(f"| {state.engine} |"))
        assert f"`{state.name}`" in row
