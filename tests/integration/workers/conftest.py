"""A place to run steps in, which must be empty at the end."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from support.place import MARKER, Place

from workers import processes
from workers.sandbox import Sandbox


@pytest.fixture
def place(sandbox: Sandbox, tmp_path: Path) -> Iterator[Place]:
    yield Place(sandbox, tmp_path)
    assert processes.kill_marked(MARKER) == 0, "a test left processes behind"
