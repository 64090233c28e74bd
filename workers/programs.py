"""What the programs of an artifact need from outside it, read from their headers; it runs none.

Refused are programs for another machine and library paths that lead out of the artifact.
"""

from __future__ import annotations

import os
import platform
import struct
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path, PurePosixPath

from jobs.errors import JobFailure, Permanent
from jobs.model import Blame
from jobs.trees import entries

MAGIC = b"\x7fELF"
MACHINES = {"x86_64": 62, "aarch64": 183, "riscv64": 243, "ppc64le": 21, "s390x": 22}
ELF_64, LITTLE_ENDIAN = 2, 1
DYNAMIC, LOAD = 2, 1
NEEDED, STRINGS, RPATH, RUNPATH = 1, 5, 15, 29
MOST_HEADERS = 512
MOST_ENTRIES = 4096
LONGEST_WORD = 4096
TOOLKITS = ("/usr/local/cuda", "/opt/cuda", "/opt/rocm")
"""CMake names the folder of a toolkit's libraries; the system of every cage holds it too."""
ORIGIN = ("$ORIGIN", "${ORIGIN}")


class NotElf(Exception):
    """This file is no program that this module can read"""


@dataclass(frozen=True)
class Program:
    """Facts of one program or library."""

    machine: int
    needs: tuple[str, ...] = ()
    library_paths: tuple[str, ...] = ()


def check(tree: Path, *, machine: str = "") -> None:
    """Raise `JobFailure` for the first program that cannot run from this tree, wherever it lies."""
    wanted = MACHINES.get(machine or platform.machine())
    try:
        found = list(entries(tree))
    except Permanent as fault:
        raise _refused("artifact_refused", fault.detail, fault.advice) from fault
    for entry in found:
        if not entry.is_file(follow_symlinks=False):
            continue
        path = Path(entry.path)
        try:
            program = read(path)
        except NotElf:
            continue
        name = os.path.relpath(path, tree)
        if wanted is not None and program.machine != wanted:
            raise _refused(
                "wrong_machine",
                f"{name!r} is a program for another kind of machine",
                "Build it for the processor of the rig; a committed binary is the usual cause.",
            )
        for word in program.library_paths:
            if _leads_out(word, PurePosixPath(name).parent):
                raise _refused(
                    "library_path",
                    f"{name!r} looks for its libraries in {word[:200]!r}",
                    "Build with CMAKE_BUILD_RPATH_USE_ORIGIN=ON and no absolute RPATH; "
                    "for stubs of the driver with GGML_CUDA_NO_VMM=ON.",
                )
        for word in program.needs:
            if "/" in word:
                raise _refused(
                    "library_path",
                    f"{name!r} needs the library {word[:200]!r} by its path",
                    "Give the library a soname without a folder.",
                )


def read(path: Path) -> Program:
    """The header of one file. Raises `NotElf` for everything that is not a sound ELF file."""
    with path.open("rb") as file:
        head = file.read(64)
        if len(head) < 20 or head[:4] != MAGIC:
            raise NotElf(path)
        order = "<" if head[5] == LITTLE_ENDIAN else ">"
        machine = struct.unpack_from(f"{order}H", head, 18)[0]
        if head[4] != ELF_64 or len(head) < 64:
            return Program(machine=-1)  # 32 bits: no rig of ours runs it
        try:
            segments = list(_segments(file.fileno(), head, order))
            return _dynamic(file.fileno(), machine, segments, order)
        except struct.error as error:
            raise NotElf(path) from error


@dataclass(frozen=True)
class _Segment:
    kind: int
    offset: int
    address: int
    size: int


def _segments(fd: int, head: bytes, order: str) -> Iterator[_Segment]:
    table, _, _, _, size, count = struct.unpack_from(f"{order}QQIHHH", head, 32)
    for number in range(min(count, MOST_HEADERS)):
        data = _at(fd, table + number * size, 56)
        kind, _, offset, address, _, in_file, _, _ = struct.unpack(f"{order}IIQQQQQQ", data)
        yield _Segment(kind, offset, address, in_file)


def _dynamic(fd: int, machine: int, segments: list[_Segment], order: str) -> Program:
    found: dict[int, list[int]] = {}
    for segment in segments:
        if segment.kind != DYNAMIC:
            continue
        for number in range(min(segment.size // 16, MOST_ENTRIES)):
            data = _at(fd, segment.offset + 16 * number, 16)
            tag, value = struct.unpack(f"{order}QQ", data)
            if tag == 0:
                break
            found.setdefault(tag, []).append(value)
    strings = _offset(segments, found[STRINGS][0]) if found.get(STRINGS) else None
    if strings is None:
        return Program(machine)
    paths = [_word(fd, strings + at) for tag in (RPATH, RUNPATH) for at in found.get(tag, [])]
    return Program(
        machine,
        needs=tuple(_word(fd, strings + at) for at in found.get(NEEDED, [])),
        library_paths=tuple(part for path in paths for part in path.split(":")),
    )


def _offset(segments: list[_Segment], address: int) -> int | None:
    for segment in segments:
        if segment.kind == LOAD and segment.address <= address < segment.address + segment.size:
            return segment.offset + address - segment.address
    return None


def _at(fd: int, offset: int, size: int) -> bytes:
    if not 0 <= offset < 2**62:
        raise struct.error("an offset outside every file")
    return os.pread(fd, size, offset)


def _word(fd: int, offset: int) -> str:
    return os.fsdecode(_at(fd, offset, LONGEST_WORD).partition(b"\0")[0])


def _leads_out(word: str, folder: PurePosixPath) -> bool:
    """Whether a library path of a program in `folder` leaves the artifact.

    CMake pads its own with an empty word, the working folder, which every step of ours names.
    """
    if not word:
        return False
    start = next((each for each in ORIGIN if word == each or word.startswith(f"{each}/")), None)
    if start is None:
        path = PurePosixPath(word)
        odd = ".." in path.parts or "stubs" in path.parts
        return odd or not word.startswith(TOOLKITS)
    depth = len(folder.parts)
    for part in PurePosixPath(word.removeprefix(start).lstrip("/")).parts:
        depth += -1 if part == ".." else 1
        if depth < 0:
            return True
    return False


def _refused(failure_class: str, detail: str, advice: str) -> JobFailure:
    return JobFailure(detail, failure_class=failure_class, blame=Blame.ENGINE, advice=advice)
