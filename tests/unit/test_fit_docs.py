"""The page of the memory model shows what the model says."""

from __future__ import annotations

from pathlib import Path

from support.shapes import UD_Q3_K_XL_BYTES, dflash_drafter, mmproj, qwen36

from jobs.fit.amounts import GIB, mib
from jobs.fit.estimate import estimate, judge
from jobs.fit.setup import Card, Setup
from jobs.known_engines import STATES, state_named

DOCS = Path(__file__).parents[2] / "docs" / "models.md"


def test_the_table_in_the_docs_is_what_the_model_says() -> None:
    """The documented wish, line by line."""
    found = estimate(
        Setup(
            target=qwen36(UD_Q3_K_XL_BYTES),
            card=Card(total_bytes=24 * GIB),
            context=262_144,
            ubatch=2048,
            state=state_named("beellama@v0.1.2"),
            key="turbo3",
            value="turbo3",
            drafter=dflash_drafter(),
            cross_context=1024,
            projector=mmproj(),
        )
    )
    text = DOCS.read_text()
    words = [" ".join(line.split()) for line in text.splitlines()]
    rows = [(line.name, line.loaded, line.filled) for line in found.components]
    for name, loaded, filled in [*rows, ("in all", found.loaded, found.filled)]:
        figures = (loaded.likely, filled.likely, filled.low, filled.high)
        row = " ".join((name, *map(mib, figures)))
        assert any(line.startswith(row) for line in words), row
    assert judge(found).sentence in words


def test_every_engine_state_is_on_the_page() -> None:
    """With the name one types."""
    text = DOCS.read_text().partition("| engine | states")[2]
    for state in STATES:
        row = next(line for line in text.splitlines() if line.startswith(f"| {state.engine} |"))
        assert f"`{state.name}`" in row
