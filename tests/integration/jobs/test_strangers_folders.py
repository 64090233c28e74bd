"""Folders that strangers filled, on a real disk: all of it goes, nothing deep is walked into."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from jobs.errors import Permanent
from jobs.trees import entries, remove, scratch


def dig(folder: Path, depth: int) -> None:
    """Folders in each other, deeper than any path name is long."""
    at = os.open(folder, os.O_RDONLY)
    for _ in range(depth):
        os.mkdir("d" * 200, dir_fd=at)
        below = os.open("d" * 200, os.O_RDONLY, dir_fd=at)
        os.close(at)
        at = below
    os.close(at)


def test_an_endlessly_deep_folder_is_removed(tmp_path: Path) -> None:
    """Neither the longest path nor the deepest recursion stops the clearing."""
    (tmp_path / "x").mkdir()
    dig(tmp_path / "x", 1500)
    remove(tmp_path / "x")
    assert list(tmp_path.iterdir()) == []


def test_a_folder_too_deep_is_said_not_walked(tmp_path: Path) -> None:
    """What goes through a tree refuses it before Python's own stack does."""
    dig(tmp_path, 100)
    with pytest.raises(Permanent, match="deep"):
        list(entries(tmp_path))


def test_scratch_goes_with_closed_folders_and_links(tmp_path: Path) -> None:
    """Folders nobody may enter are removed, and what a link points to stays."""
    (tmp_path / "kept").write_text("x")
    with scratch("s-", tmp_path) as folder:
        (folder / "closed").mkdir()
        (folder / "closed" / "file").write_text("x")
        (folder / "closed").chmod(0)
        (folder / "out").symlink_to(tmp_path)
        (folder / "file").symlink_to(tmp_path / "kept")
        os.mkfifo(folder / "pipe")
    assert [path.name for path in tmp_path.iterdir()] == ["kept"]
