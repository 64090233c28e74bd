"""How a chain of which little is known, or nothing is shared, is shown to a person."""

from __future__ import annotations

from datetime import UTC, datetime
from io import StringIO

import pytest
from rich.console import Console
from support.graphs import Story, sha

from jobs.errors import UsageError
from scout.family import as_tree, family_of
from scout.graph import Graph
from scout.kinship import Kin

NOW = datetime(2026, 5, 22, tzinfo=UTC)


class Told:
    """A history that holds one story."""

    def __init__(self, story: Story) -> None:
        self.story = story

    def graph(self, numbers: object) -> Graph:
        return self.story.graph()


def kin(number: int, name: str, head: str = "", parent: str = "") -> Kin:
    refs = {"refs/heads/main": sha(head)} if head else {}
    return Kin(name, number, f"a/{name}", number, branches=("main",), parent=parent or None,
               refs=refs)  # fmt: skip


def shown(engine: str, *chain: Kin) -> str:
    story = Story()
    story.line("u0 u1", author="Up")
    story.line("x0", on="u0")
    story.line("y0", on="x0")
    story.line("z0")
    found = family_of(engine, {each.name: each for each in chain}, Told(story), now=NOW)  # type: ignore[arg-type]
    text = StringIO()
    Console(width=200, file=text).print(as_tree(found, marked=engine))
    return text.getvalue()


def test_a_chain_without_its_upstream_is_shown_as_far_as_it_is_known() -> None:
    """Upstream is marked, the parent counts, and nothing is counted against upstream."""
    text = shown("y", kin(1, "up"), kin(2, "x", "x0", "up"), kin(3, "y", "y0", "x"))
    assert "up  main  not seen yet" in text
    assert "up was not seen yet, nothing is counted against it" in text
    assert "x +1 -0" in text
    assert "1 patch not in x" in text
    assert "own patches" not in text


def test_a_fork_that_was_not_seen_is_in_the_tree() -> None:
    """The others are told as ever, and a child of it hangs under it."""
    text = shown("y", kin(1, "up", "u1"), kin(2, "x", "", "up"), kin(3, "y", "y0", "x"))
    assert "x  main  not seen yet" in text
    assert "upstream +2 -1" in text


def test_unrelated_histories_have_no_counts() -> None:
    """The words take the place of two numbers."""
    text = shown("z", kin(1, "up", "u1"), kin(2, "z", "z0", "up"))
    assert "upstream nothing in common" in text
    assert "-2" not in text


def test_a_chain_of_which_nothing_was_seen_is_refused() -> None:
    """The advice is the command that says why."""
    with pytest.raises(UsageError) as refused:
        shown("x", kin(1, "up"), kin(2, "x", "", "up"))
    assert "scout run --source git" in refused.value.advice
