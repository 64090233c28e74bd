"""Unpacks a release file into a folder, bounded; it refuses whatever is no plain file or folder.

A link is taken where it names a file of the same archive beside it, as libraries do for their
versions; one that leads anywhere else, a device, a pipe, or a path that climbs ends the unpacking.
"""

from __future__ import annotations

import stat
import tarfile
import zipfile
import zlib
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from lzma import LZMAError
from pathlib import Path, PurePosixPath
from typing import IO

from jobs.errors import JobFailure
from jobs.model import Blame
from jobs.trees import escaping_links

CHUNK_BYTES = 2**20
MOST_FILES = 20_000
MOST_BYTES = 16 * 2**30
LONGEST_PATH = 400
DAMAGED = (
    *(tarfile.TarError, zipfile.BadZipFile, zlib.error, LZMAError, EOFError),
    *(NotImplementedError, UnicodeError, ValueError, RuntimeError),
)
"""What the readers of archives raise for one that is none."""


@dataclass(frozen=True)
class Bounds:
    """How much may come out of one archive."""

    files: int = MOST_FILES
    size_bytes: int = MOST_BYTES


@dataclass(frozen=True)
class _Entry:
    """One thing in an archive; `link` is where it points, `read` gives its content."""

    path: PurePosixPath
    is_folder: bool
    executable: bool
    link: str | None
    open: Callable[[], IO[bytes]]


def unpack(
    archive: Path,
    into: Path,
    *,
    check: Callable[[], None] = lambda: None,
    bounds: Bounds = Bounds(),
) -> None:
    """Fill the new folder `into`; raises `JobFailure` for an archive that is not taken.

    Nothing is written outside it, and what an entry says of its size is not believed.
    """
    into.mkdir()
    budget = _Budget(bounds)
    try:
        with _opened(archive) as entries:
            for entry in entries:
                check()
                budget.count()
                _write(entry, into, budget, check)
    except DAMAGED as fault:
        raise refused(f"{archive.name} cannot be read: {str(fault)[:200]}") from fault
    if links := escaping_links(into):
        raise refused(f"{links[0]!r} is a link that leads out of the archive")


def refused(detail: str) -> JobFailure:
    """The file is not taken, whatever it holds."""
    return JobFailure(
        detail,
        failure_class="archive_refused",
        blame=Blame.ENGINE,
        phase="unpack",
        advice="Look at the release by hand, or build the engine from its source.",
    )


class _Budget:
    def __init__(self, bounds: Bounds) -> None:
        self._bounds = bounds
        self._files = 0
        self._bytes = 0

    def count(self) -> None:
        self._files += 1
        if self._files > self._bounds.files:
            raise refused(f"it holds more than {self._bounds.files} entries")

    def take(self, size: int) -> None:
        self._bytes += size
        if self._bytes > self._bounds.size_bytes:
            raise refused(f"it unpacks to more than {self._bounds.size_bytes / 1e9:.1f} GB")


def _write(entry: _Entry, into: Path, budget: _Budget, check: Callable[[], None]) -> None:
    target = into / entry.path
    for parent in target.relative_to(into).parents:
        if (into / parent).is_symlink():
            raise refused(f"{str(entry.path)!r} goes through a link")
    if entry.is_folder:
        target.mkdir(parents=True, exist_ok=True)
        return
    target.parent.mkdir(parents=True, exist_ok=True)
    if target.is_symlink() or target.exists():
        raise refused(f"{str(entry.path)!r} comes twice")
    if entry.link is not None:
        if not _is_beside(entry.link):
            raise refused(f"{str(entry.path)!r} is a link that leads out of its folder")
        target.symlink_to(entry.link)
        return
    with entry.open() as content, target.open("xb") as file:
        while data := content.read(CHUNK_BYTES):
            check()
            budget.take(len(data))
            file.write(data)
    target.chmod(0o755 if entry.executable else 0o644)


def _is_beside(link: str) -> bool:
    return bool(link) and "/" not in link and "\0" not in link and link not in (".", "..")


def _checked(name: str) -> PurePosixPath:
    path = PurePosixPath(name)
    odd = not name.isprintable() or "\\" in name or len(name) > LONGEST_PATH
    if odd or path.is_absolute() or ".." in path.parts or not path.parts:
        raise refused(f"it holds a path that is not taken: {name[:120]!r}")
    return path


@contextmanager
def _opened(archive: Path) -> Iterator[Iterator[_Entry]]:
    if zipfile.is_zipfile(archive):
        with zipfile.ZipFile(archive) as found:
            yield (_of_zip(found, each) for each in found.infolist())
        return
    with tarfile.open(archive, "r|*") as found_tar:
        yield (_of_tar(found_tar, each) for each in found_tar if each.name not in (".", "./"))


def _of_tar(archive: tarfile.TarFile, member: tarfile.TarInfo) -> _Entry:
    if not (member.isfile() or member.isdir() or member.issym()) or member.issparse():
        raise refused(f"{member.name[:120]!r} is neither file, folder nor link")

    def content() -> IO[bytes]:
        found = archive.extractfile(member)
        if found is None:
            raise refused(f"{member.name[:120]!r} has no content")
        return found

    return _Entry(
        path=_checked(member.name),
        is_folder=member.isdir(),
        executable=bool(member.mode & stat.S_IXUSR),
        link=member.linkname if member.issym() else None,
        open=content,
    )


def _of_zip(archive: zipfile.ZipFile, member: zipfile.ZipInfo) -> _Entry:
    mode = member.external_attr >> 16
    kind = stat.S_IFMT(mode)
    if kind not in (0, stat.S_IFREG, stat.S_IFDIR, stat.S_IFLNK):
        raise refused(f"{member.filename[:120]!r} is neither file, folder nor link")
    link = None
    if kind == stat.S_IFLNK:
        with archive.open(member) as content:
            link = content.read(LONGEST_PATH + 1).decode()
    return _Entry(
        path=_checked(member.filename),
        is_folder=member.is_dir(),
        executable=bool(mode & stat.S_IXUSR),
        link=link,
        open=lambda: archive.open(member),
    )
