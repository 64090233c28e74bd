"""Builds that attack, over every cage: none wins, each is named, nothing of it is left."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest
from support.hostile import WON, Hostile, meet
from support.hostile_table import TABLE
from support.place import CAGED

from workers.sandbox import Sandbox


def _row(hostile: Hostile) -> object:
    marks = [pytest.mark.needs(*hostile.needs)] if hostile.needs else []
    return pytest.param(hostile, id=hostile.name.replace(" ", "-"), marks=marks)


@CAGED
@pytest.mark.parametrize("hostile", [_row(hostile) for hostile in TABLE])
def test_a_hostile_build_is_contained_and_named(
    sandbox: Sandbox, hostile: Hostile, tmp_path: Path
) -> None:
    """It reaches nothing, ends with a class and advice, and leaves no process, file or mount."""
    outcome = meet(hostile, sandbox, tmp_path)
    assert WON not in outcome.log
    assert outcome.failure_class in hostile.classes, outcome.log[-2000:]
    assert bool(outcome.advice) == bool(outcome.failure_class)
    assert outcome.left == []
    assert (tmp_path / "hidden" / "secret").read_text() == "hush"
    assert shutil.disk_usage(tmp_path).free > 0


def test_the_table_holds_every_attack_we_promise() -> None:
    """Twenty and more, each under its own name."""
    assert len({hostile.name for hostile in TABLE}) == len(TABLE) >= 20
