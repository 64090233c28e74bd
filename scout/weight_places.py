"""Opens the place of a weight file, on this machine or on a server, and reads its header."""

from __future__ import annotations

import os
import re
import stat
from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from urllib.parse import unquote, urlsplit

import httpx

from jobs.errors import BadGguf, Transient, UsageError
from jobs.gguf.facts import ModelFacts
from jobs.gguf.header import Header
from jobs.gguf.reader import Depth, read_header
from jobs.gguf.reading import facts_of
from jobs.terminal import printable
from scout import ranges

_URL = re.compile(r"([A-Za-z][A-Za-z0-9+.-]*)://")
_REPO = re.compile(r"(?:hf:.+|[\w.-]+/[\w.-]+:[\w.-]+)", re.ASCII)
_KINDS: tuple[tuple[Callable[[int], bool], str, str], ...] = (
    (stat.S_ISDIR, "a folder", "Name a file in it."),
    (stat.S_ISFIFO, "a pipe", "Write it to a file first."),
    (stat.S_ISSOCK, "a socket", "Name a file."),
    (stat.S_ISCHR, "a device", "Name a file."),
    (stat.S_ISBLK, "a device", "Name a file."),
)
_GONE = "Check the path; an address starts with https://."


@dataclass(frozen=True)
class Opened:
    """A file whose bytes can be asked for."""

    file_name: str
    size_bytes: int | None
    fetch: Callable[[int, int], bytes]
    check: Callable[[], None]


@dataclass(frozen=True)
class Reading:
    """What was read of one place."""

    place: str
    file_name: str
    header: Header
    facts: ModelFacts


def read_model(
    place: str, *, full: bool = False, token: str = "", http: httpx.Client | None = None
) -> Reading:
    """The header and the facts of the file at a path or an address.

    Raises `UsageError` where the place is none, `BadGguf` where the file is none, `Transient` and
    `Permanent` for what a server said.
    """
    try:
        with opened(place, token=token, http=http) as file:
            header = read_header(
                file.fetch,
                size_bytes=file.size_bytes,
                depth=Depth.FULL if full else Depth.FACTS,
                check=file.check,
            )
            facts = facts_of(header, file_name=file.file_name)
            return Reading(place, file.file_name, header, facts)
    except BadGguf as fault:
        raise BadGguf(
            f"{printable(place.partition('?')[0])[-120:]}: {fault.detail}",
            advice="Check what the file is; a model file ends on .gguf and starts with GGUF.",
        ) from fault


@contextmanager
def opened(place: str, *, token: str = "", http: httpx.Client | None = None) -> Iterator[Opened]:
    """The file at a path or an http address, closed at the end."""
    if scheme := _URL.match(place):
        if scheme[1].lower() not in ("http", "https"):
            raise UsageError(
                f"{place[:80]!r} is no place we read", advice="Name a path or an https:// address."
            )
        with nullcontext(http) if http else ranges.client() as asking:
            file = ranges.RangedFile(place, http=asking, token=token)
            name = PurePosixPath(unquote(urlsplit(place).path)).name
            yield Opened(name, file.size_bytes, file.fetch, file.check)
        return
    if _REPO.fullmatch(place) and not os.path.lexists(place):
        raise UsageError(
            f"{place[:80]!r} names a repository, not a file",
            advice="Name the file's own address: https://HOST/OWNER/REPO/resolve/COMMIT/FILE.gguf",
        )
    handle = _open_file(place)
    try:
        size_bytes = os.fstat(handle).st_size
        yield Opened(Path(place).name, size_bytes, _local(handle, place), lambda: None)
    finally:
        os.close(handle)


def _open_file(place: str) -> int:
    named = repr(printable(place)[-120:])
    try:
        _refuse_kind(Path(place).stat().st_mode, named)
        handle = os.open(place, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    except FileNotFoundError as fault:
        raise UsageError(f"{named} is not there", advice=_GONE) from fault
    except PermissionError as fault:
        raise UsageError(f"{named} may not be read", advice="Check its permissions.") from fault
    except (OSError, ValueError) as fault:
        why = fault.strerror if isinstance(fault, OSError) else "it is no path"
        raise UsageError(f"{named} cannot be opened: {why}", advice=_GONE) from fault
    try:
        _refuse_kind(os.fstat(handle).st_mode, named)
    except UsageError:
        os.close(handle)
        raise
    return handle


def _refuse_kind(mode: int, named: str) -> None:
    for is_kind, word, advice in _KINDS:
        if is_kind(mode):
            raise UsageError(f"{named} is {word}, not a file", advice=advice)


def _local(handle: int, place: str) -> Callable[[int, int], bytes]:
    def fetch(offset: int, length: int) -> bytes:
        try:
            return os.pread(handle, length, offset)
        except OSError as fault:
            raise Transient(
                f"{printable(place)[-120:]!r} cannot be read: {fault.strerror}",
                advice="Check the disk.",
            ) from fault

    return fetch
