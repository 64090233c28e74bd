"""The content-addressed store of finished builds; refuses what no build may hold."""

from __future__ import annotations

import errno
import fcntl
import hashlib
import json
import os
import re
import shutil
import stat
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from jobs.errors import NO_ROOM, JobFailure, Permanent, UsageError, disk_full
from jobs.model import Blame
from jobs.trees import entries, escaping_links, make_readable, remove

INCOMING = ".incoming-"
_DIGEST = re.compile(r"[0-9a-f]{64}")


def tree_digest(tree: Path) -> str:
    """sha256 over path, kind, executable bit and content of everything below `tree`.

    Raises `JobFailure` for a link that is absolute or leads out, a device, a socket, a pipe, or a
    file that would run as its owner.
    """
    links = escaping_links(tree)
    if links:
        raise _refused(f"{links[0]!r} is a link that leads out of the artifact")
    digest = hashlib.sha256()
    for entry in entries(tree):
        path = Path(entry.path)
        mode = path.lstat().st_mode
        name = os.fsencode(path.relative_to(tree))
        digest.update(b"\0".join([*_description(path, mode), name]) + b"\0\0")
    return digest.hexdigest()


def store(tree: Path, root: Path) -> str:
    """Move `tree` into the store, read-only, and return its digest. No process may still write it.

    An artifact that the store already holds is kept as it is. A half-written one is never seen.
    """
    root.mkdir(mode=0o700, parents=True, exist_ok=True)
    sweep(root)
    try:
        make_readable(tree)
        tree_digest(tree)
    except Permanent as fault:
        raise _refused(fault.detail) from fault
    with _incoming(root) as incoming, disk_full_is_infrastructure():
        arrived = incoming / "tree"
        shutil.move(tree, arrived)
        _make_read_only(arrived)
        digest = tree_digest(arrived)
        try:
            incoming.rename(root / digest)
        except OSError as error:
            if error.errno not in (errno.EEXIST, errno.ENOTEMPTY):
                raise
    return digest


def find(root: Path, digest: str) -> Path | None:
    """The tree of this digest, or None where the store does not hold it."""
    tree = root / _checked(digest) / "tree"
    return tree if tree.is_dir() else None


def size_bytes(tree: Path) -> int:
    """Bytes of all regular files below `tree`."""
    return sum(entry.stat(follow_symlinks=False).st_size for entry in entries(tree))


def verify(root: Path, digest: str) -> None:
    """Raise `JobFailure` unless the store holds exactly what this digest names."""
    tree = find(root, digest)
    if not is_whole(root, digest):
        state = "is not in the store" if tree is None else "is not what was stored"
        raise JobFailure(
            f"artifact {digest[:12]} {state}",
            failure_class="artifact_missing" if tree is None else "artifact_damaged",
            blame=Blame.INFRASTRUCTURE,
            advice="Build it again; look at the disk of the worker if this repeats.",
        )


def is_whole(root: Path, digest: str) -> bool:
    """Whether the store holds exactly what this digest names."""
    tree = find(root, digest)
    return tree is not None and tree_digest(tree) == digest


def discard(root: Path, digest: str) -> None:
    """Take an artifact out of the store, whole: it disappears before its files go."""
    held = root / _checked(digest)
    if held.exists():
        with _incoming(root) as incoming:
            held.rename(incoming / "discarded")


def write_provenance(root: Path, digest: str, provenance: Mapping[str, Any]) -> None:
    """Write beside the artifact how it was made; the first word stands."""
    target = root / _checked(digest) / "provenance.json"
    if target.exists():
        return
    with disk_full_is_infrastructure():
        fresh = target.with_suffix(f".{os.getpid()}")
        fresh.write_text(json.dumps(provenance, indent=2, sort_keys=True) + "\n")
        fresh.rename(target)


def read_provenance(root: Path, digest: str) -> dict[str, Any]:
    """What was written beside the artifact; raises `JobFailure` where that is gone."""
    try:
        return dict(json.loads((root / _checked(digest) / "provenance.json").read_text()))
    except (OSError, ValueError, TypeError) as error:
        raise JobFailure(
            f"artifact {digest[:12]} has no readable provenance",
            failure_class="artifact_damaged",
            blame=Blame.INFRASTRUCTURE,
            advice="Build it again; look at the disk of the worker if this repeats.",
        ) from error


def sweep(root: Path) -> int:
    """Remove what crashed stores left, and say how many; one that is being written is spared."""
    removed = 0
    for leftover in root.glob(f"{INCOMING}*"):
        try:
            lock = os.open(leftover, os.O_RDONLY | os.O_DIRECTORY)
        except FileNotFoundError:
            continue
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            continue
        else:
            remove(leftover)
            removed += 1
        finally:
            os.close(lock)
    return removed


def check_free(path: Path, min_free_bytes: int) -> None:
    """Raise `JobFailure` of class `disk_full` when less than this is free where `path` lies."""
    free = shutil.disk_usage(path).free
    if free < min_free_bytes:
        raise disk_full(f"{free / 1e9:.1f} GB are free and {min_free_bytes / 1e9:.1f} GB needed")


@contextmanager
def disk_full_is_infrastructure(what: str = "", *, phase: str = "") -> Iterator[None]:
    """Turn "no space left" inside the block into a `JobFailure` that blames no engine."""
    try:
        yield
    except OSError as error:
        if error.errno in NO_ROOM:
            raise disk_full(f"{what}{os.strerror(error.errno or 0)}", phase=phase) from error
        raise


def _description(path: Path, mode: int) -> list[bytes]:
    if stat.S_ISDIR(mode):
        return [b"folder", b"", b""]
    if stat.S_ISLNK(mode):
        return [b"link", b"", os.fsencode(path.readlink())]
    if not stat.S_ISREG(mode):
        raise _refused(f"{path.name!r} is neither file, folder nor link")
    if mode & (stat.S_ISUID | stat.S_ISGID):
        raise _refused(f"{path.name!r} would run with the rights of its owner")
    with path.open("rb") as file:
        content = hashlib.file_digest(file, "sha256").hexdigest()
    return [b"file", b"x" if mode & stat.S_IXUSR else b"", content.encode()]


def _make_read_only(tree: Path) -> None:
    for entry in entries(tree):
        if not entry.is_symlink():
            mode = entry.stat(follow_symlinks=False).st_mode
            Path(entry.path).chmod(0o555 if mode & stat.S_IXUSR or entry.is_dir() else 0o444)
    tree.chmod(0o555)


@contextmanager
def _incoming(root: Path) -> Iterator[Path]:
    folder = Path(tempfile.mkdtemp(prefix=INCOMING, dir=root))
    lock = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    try:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield folder
    finally:
        os.close(lock)
        remove(folder)


def _checked(digest: str) -> str:
    if not _DIGEST.fullmatch(digest):
        raise UsageError(f"{digest[:80]!r} is not an artifact", advice="Give its full sha256.")
    return digest


def _refused(detail: str) -> JobFailure:
    return JobFailure(
        detail,
        failure_class="artifact_refused",
        blame=Blame.ENGINE,
        advice="The build made something that is not kept. Look at its log.",
    )
