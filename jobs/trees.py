"""What may lie in a folder that strangers fill: names that stay inside, links that stay inside."""

from __future__ import annotations

import os
import re
import shutil
import stat
from collections.abc import Iterator
from pathlib import Path

from jobs.errors import UsageError

_PLAIN_PART = re.compile(r"[^\x00-\x1f\x7f/\\:]{1,255}")


def inside(folder: Path, name: str) -> Path:
    """The path of `name` in `folder`; anything that could lead elsewhere is refused (case C141)."""
    parts = name.split("/")
    odd = any(part in ("", ".", "..") or not _PLAIN_PART.fullmatch(part) for part in parts)
    path = folder.joinpath(*parts) if not odd else folder
    if odd or not path.resolve().is_relative_to(folder.resolve()):
        raise UsageError(
            f"{name[:200]!r} is not a file name",
            advice="Names are relative, with plain parts between single slashes.",
        )
    return path


def entries(tree: Path) -> Iterator[os.DirEntry[str]]:
    """Everything below `tree`, in the same order on every machine; links are not followed."""
    with os.scandir(tree) as found:
        ordered = sorted(found, key=lambda entry: os.fsencode(entry.name))
    for entry in ordered:
        yield entry
        if entry.is_dir(follow_symlinks=False):
            yield from entries(Path(entry.path))


def escaping_links(tree: Path) -> list[str]:
    """Links that are absolute or lead out of `tree`, by their path inside it."""
    root = tree.resolve()
    found = []
    for entry in entries(tree):
        if entry.is_symlink():
            absolute = Path(entry.path).readlink().is_absolute()
            if absolute or not Path(os.path.realpath(entry.path)).is_relative_to(root):
                found.append(os.path.relpath(entry.path, tree))
    return found


def make_readable(tree: Path) -> None:
    """Give the owner back what a build took away: every folder can be entered, every file read."""
    tree.chmod(tree.lstat().st_mode | stat.S_IRWXU)
    for entry in entries(tree):
        mode = entry.stat(follow_symlinks=False).st_mode
        if stat.S_ISDIR(mode):
            Path(entry.path).chmod(stat.S_IMODE(mode) | stat.S_IRWXU)
        elif stat.S_ISREG(mode) and not mode & stat.S_IRUSR:
            Path(entry.path).chmod(stat.S_IMODE(mode) | stat.S_IRUSR)


def remove(tree: Path) -> None:
    """Remove a folder that strangers filled, read-only parts too; one that is gone is fine."""
    if tree.is_dir() and not tree.is_symlink():
        make_readable(tree)
        shutil.rmtree(tree)
