"""Every refusal says what to do next."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
ROOMS = ("jobs", "scout", "workers", "web")
ERRORS = {"UsageError"}
IN_SCOUT = {"UsageError", "Transient", "Permanent"}


def silent(path: Path, names: set[str]) -> Iterator[str]:
    """Places that raise without advice, or with an empty one."""
    for node in ast.walk(ast.parse(path.read_text())):
        if not (isinstance(node, ast.Call) and isinstance(node.func, ast.Name)):
            continue
        if node.func.id in names:
            given = {each.arg: each.value for each in node.keywords}
            advice = given.get("advice")
            if advice is None or (isinstance(advice, ast.Constant) and not advice.value):
                yield f"{path.relative_to(ROOT)}:{node.lineno}"


@pytest.mark.parametrize("room", ROOMS)
def test_every_wrong_wish_is_answered_with_advice(room: str) -> None:
    """A person who is told no is told what to type instead; scout says it of every fault."""
    names = IN_SCOUT if room == "scout" else ERRORS
    assert [each for path in (ROOT / room).rglob("*.py") for each in silent(path, names)] == []


def test_every_fault_of_a_watch_list_has_advice() -> None:
    """The readers name what would be right beside each mistake."""
    trees = [ast.parse(path.read_text()) for path in (ROOT / "scout").glob("*.py")]
    calls = [node for tree in trees for node in ast.walk(tree) if isinstance(node, ast.Call)]
    made = [node for node in calls if isinstance(node.func, ast.Name) and node.func.id == "Problem"]
    assert len(made) > 15
    assert [node.lineno for node in made if len(node.args) < 3] == []
