"""Headers of programs, sound, foreign and malformed, written byte by byte."""

from __future__ import annotations

import random
import struct
from pathlib import Path

import pytest

from jobs.errors import JobFailure
from workers import programs
from workers.programs import NotElf, check, read

STRINGS = b"\0libc.so.6\0"


def elf(*, machine: int = 62, rpath: str = "", needed: str = "libc.so.6", bits: int = 2) -> bytes:
    """A program of two segments: one that is loaded, and one that names libraries."""
    strings = STRINGS + rpath.encode() + b"\0" + needed.encode() + b"\0"
    paths = len(STRINGS)
    entries = [(5, 0x1000), (1, paths + len(rpath) + 1)]
    entries += [(29, paths)] if rpath else []
    dynamic = b"".join(struct.pack("<QQ", *entry) for entry in (*entries, (0, 0)))
    at_strings = 64 + 2 * 56
    at_dynamic = at_strings + len(strings)
    head = b"\x7fELF" + bytes([bits, 1, 1]) + bytes(9)
    head += struct.pack("<HHIQQQIHHHHHH", 3, machine, 1, 0, 64, 0, 0, 64, 56, 2, 0, 0, 0)
    load = struct.pack("<IIQQQQQQ", 1, 4, at_strings, 0x1000, 0, len(strings), len(strings), 1)
    dyn = struct.pack("<IIQQQQQQ", 2, 4, at_dynamic, 0x9000, 0, len(dynamic), len(dynamic), 1)
    return head + load + dyn + strings + dynamic


def tree(folder: Path, content: bytes, name: str = "bin/llama-server") -> Path:
    path = folder / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(content)
    return folder


def test_names_are_read(tmp_path: Path) -> None:
    """Machine, needed libraries and library paths, one for each colon."""
    tree(tmp_path, elf(rpath="$ORIGIN:/x"))
    found = read(tmp_path / "bin" / "llama-server")
    assert (found.machine, found.needs, found.library_paths) == (
        62,
        ("libc.so.6",),
        ("$ORIGIN", "/x"),
    )


@pytest.mark.parametrize(
    "rpath",
    ["", "$ORIGIN", "$ORIGIN:", "${ORIGIN}/../lib", "$ORIGIN/x/../y", "/usr/local/cuda-12.8/lib64"],
)
def test_paths_inside_the_artifact_pass(tmp_path: Path, rpath: str) -> None:
    """From bin/ one folder up is still inside; a toolkit of the card is in every cage."""
    check(tree(tmp_path, elf(rpath=rpath)), machine="x86_64")


@pytest.mark.parametrize(
    "rpath",
    [
        "/usr/local/lib",
        "$ORIGIN/../..",
        "lib",
        ".",
        "$ORIGINAL/x",
        "$ORIGIN:/stubs",
        "/usr/local/cuda/lib64/stubs",
        "/usr/local/cuda/../x",
    ],
)
def test_paths_that_lead_out_are_refused(tmp_path: Path, rpath: str) -> None:
    """Absolute, climbing, relative to wherever it starts, and stubs (case C104)."""
    with pytest.raises(JobFailure) as caught:
        check(tree(tmp_path, elf(rpath=rpath)), machine="x86_64")
    assert caught.value.failure_class == "library_path"


def test_a_library_named_by_its_path_is_refused(tmp_path: Path) -> None:
    """It would be loaded from the builder's folder."""
    with pytest.raises(JobFailure, match="by its path"):
        check(tree(tmp_path, elf(needed="/build/output/libx.so")), machine="x86_64")


@pytest.mark.parametrize("content", [elf(machine=183), elf(bits=1)])
def test_a_program_for_another_machine_is_refused(tmp_path: Path, content: bytes) -> None:
    """Another processor, or 32 bits."""
    with pytest.raises(JobFailure) as caught:
        check(tree(tmp_path, content), machine="x86_64")
    assert caught.value.failure_class == "wrong_machine"


@pytest.mark.parametrize("content", [b"", b"\x7fELF", b"#!/bin/sh\n", b"MZ" * 40])
def test_what_is_no_program_passes(tmp_path: Path, content: bytes) -> None:
    """Scripts, texts and empty files are nobody's machine code."""
    check(tree(tmp_path, content), machine="x86_64")


def test_broken_headers_never_crash(tmp_path: Path) -> None:
    """Any bytes changed: it is read, or it is not a program."""
    chance = random.Random(7)
    path = tmp_path / "x"
    for _ in range(400):
        data = bytearray(elf(rpath="$ORIGIN"))
        for _ in range(chance.randrange(1, 12)):
            data[chance.randrange(4, len(data))] = chance.randrange(256)
        path.write_bytes(data[: chance.randrange(20, len(data))])
        try:
            assert isinstance(read(path), programs.Program)
        except NotElf:
            continue
