"""What may lie in a folder that strangers fill: names that stay inside, links that stay inside."""

from __future__ import annotations

import itertools
import os
import re
import secrets
import stat
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from jobs.errors import Permanent, UsageError

DEEPEST = 64
"""How deep folders may lie in each other; the deepest engine of the chain needs a dozen."""

LONGEST_PATH = 3800
"""Bytes of a folder's path; with one more name it must stay below the kernel's 4096."""

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


def entries(tree: Path, *, deepest: int = DEEPEST) -> Iterator[os.DirEntry[str]]:
    """Everything below `tree`, in the same order on every machine; links are not followed.

    Raises `Permanent` where folders lie deeper in each other than any program puts them.
    """
    if len(os.fsencode(tree)) > LONGEST_PATH:
        raise _too_deep()
    with os.scandir(tree) as found:
        ordered = sorted(found, key=lambda entry: os.fsencode(entry.name))
    for entry in ordered:
        yield entry
        if entry.is_dir(follow_symlinks=False):
            if deepest <= 0:
                raise _too_deep()
            yield from entries(Path(entry.path), deepest=deepest - 1)


def _too_deep() -> Permanent:
    return Permanent(
        f"folders lie more than {DEEPEST} deep in each other, or under names without end",
        advice="No program needs that; look at what made them.",
    )


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
    """Remove a folder that strangers filled, read-only or endlessly deep; one gone is fine."""
    if not tree.is_dir() or tree.is_symlink():
        return
    root = os.open(tree, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW)
    try:
        os.fchmod(root, stat.S_IRWXU)
        _empty(root)
    finally:
        os.close(root)
    tree.rmdir()


@contextmanager
def scratch(prefix: str, parent: Path) -> Iterator[Path]:
    """A fresh folder for strangers to fill, gone at the end whatever they made of it."""
    folder = Path(tempfile.mkdtemp(prefix=prefix, dir=parent))
    try:
        yield folder
    finally:
        remove(folder)


def _empty(root: int) -> None:
    """Take everything out of a folder, never naming a long path: what is below comes up first."""
    waiting: list[str] = []
    fresh = itertools.count()
    _lift(root, root, waiting, fresh)
    while waiting:
        name = waiting.pop()
        folder = os.open(name, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW, dir_fd=root)
        try:
            _lift(folder, root, waiting, fresh)
        finally:
            os.close(folder)
        os.rmdir(name, dir_fd=root)


def _lift(folder: int, root: int, waiting: list[str], fresh: Iterator[int]) -> None:
    """Delete the files of `folder` and move its folders into `root` under names nobody uses."""
    with os.scandir(folder) as found:
        held = [(entry.name, entry.is_dir(follow_symlinks=False)) for entry in found]
    for name, is_folder in held:
        if not is_folder:
            os.unlink(name, dir_fd=folder)
            continue
        os.chmod(name, stat.S_IRWXU, dir_fd=folder)
        lifted = f".removing-{os.getpid()}-{next(fresh)}-{secrets.token_hex(8)}"
        os.rename(name, lifted, src_dir_fd=folder, dst_dir_fd=root)
        waiting.append(lifted)
