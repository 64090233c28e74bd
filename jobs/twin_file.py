"""Writes a twin to disk, whole or not at all, and goes on where it was interrupted."""

from __future__ import annotations

import argparse
import fcntl
import os
import random
import shutil
import stat
import sys
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import IO

from jobs.errors import NO_ROOM, BadGguf, ScoutError, UsageError, disk_full
from jobs.gguf.header import Header
from jobs.gguf.limits import HEADER_BYTES
from jobs.gguf.reader import Depth, read_header
from jobs.terminal import printable
from jobs.twin.plan import Fetch, Twin, plan, weights

SPARE_BYTES = 256 * 2**20
"""Left free on the disk that a twin is written to."""

Tell = Callable[[int, int], None]


def seeded(seed: str, count: int) -> bytes:
    """The same bytes for the same seed, on every machine."""
    return random.Random(seed).randbytes(count)  # noqa: S311 - weights, not secrets


def read_local(path: Path) -> tuple[Header, Fetch]:
    """The whole header of a file, and a way to its bytes; a file cut behind its header will do."""
    try:
        with path.open("rb") as file:
            held = file.read(HEADER_BYTES)
    except OSError as fault:
        raise UsageError(
            f"{path} cannot be read: {fault.strerror}", advice="Name a GGUF file or its address."
        ) from fault

    def fetch(offset: int, length: int) -> bytes:
        piece = held[offset : offset + length]
        return piece + bytes(length - len(piece))

    header = read_header(fetch, depth=Depth.FULL)
    if header.table_end is None or header.table_end > len(held):
        raise BadGguf(f"the header of {path.name} is cut short")
    return header, fetch


def write(twin: Twin, out: Path, *, tell: Tell = lambda _done, _total: None) -> int:
    """Write the file under another name, then rename it; says how many bytes were there already.

    `tell` hears the bytes written so far. Raises UsageError where `out` exists, where there is no
    room, where what stands at the other name is not this twin's, or where somebody else writes it.
    """
    out = out.absolute()
    part = out.with_name(f"{out.name}.part")
    if out.exists():
        raise UsageError(f"{out} is there already", advice="Remove it or choose another name.")
    if not out.parent.is_dir():
        raise UsageError(f"there is no folder {out.parent}", advice="Make it first.")
    held = part.stat().st_size if part.exists() else 0
    missing = twin.size_bytes - held + SPARE_BYTES
    free = shutil.disk_usage(out.parent).free
    if missing > free:
        raise UsageError(
            f"the twin has {twin.size_bytes:,} bytes, the disk of {out} {free:,} free",
            advice="Choose another disk, or make room.",
        )
    try:
        with _opened(part) as file:
            _take(file.fileno(), part)
            if out.exists():
                raise UsageError(f"{out} has just been written", advice="It is there; look at it.")
            first, done = _begun(twin, file.fileno(), part)
            tell(done, twin.size_bytes)
            for at, piece in weights(twin, seeded, first=first):
                _write_all(file.fileno(), piece, at)
                tell(at + len(piece), twin.size_bytes)
            file.truncate(twin.size_bytes)
            part.rename(out)
    except OSError as fault:
        if fault.errno in NO_ROOM:
            raise disk_full(f"{part} could not be written: the disk is full") from fault
        raise UsageError(
            f"{out} could not be written: {fault.strerror}",
            advice="Look at the disk and at the permissions of the folder.",
        ) from fault
    return done if first else 0


def _opened(part: Path) -> IO[bytes]:
    """The unfinished file itself, made where there is none; never what a link leads to."""
    try:
        descriptor = os.open(part, os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_NONBLOCK, 0o666)
    except OSError as fault:
        if part.is_symlink():
            raise _not_ours(part) from fault
        raise
    if not stat.S_ISREG(os.fstat(descriptor).st_mode):
        os.close(descriptor)
        raise _not_ours(part)
    return os.fdopen(descriptor, "r+b", buffering=0)


def _take(file: int, part: Path) -> None:
    """Write alone, and into what still stands under that name."""
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        same = os.path.samestat(os.fstat(file), part.lstat())
    except (BlockingIOError, FileNotFoundError):
        same = False
    if not same:
        raise UsageError(
            f"another process writes {part}", advice="Wait for it, or choose another name."
        )


def _not_ours(part: Path) -> UsageError:
    return UsageError(
        f"{part} is there and is no part of this twin",
        advice="Move it away, or choose another name.",
    )


def _begun(twin: Twin, file: int, part: Path) -> tuple[int, int]:
    """The first tensor that is not whole yet and where it begins; what is foreign is refused."""
    size = os.fstat(file).st_size
    held = os.pread(file, len(twin.head), 0)
    if not twin.head.startswith(held):
        raise _not_ours(part)
    if held != twin.head:
        _write_all(file, twin.head, 0)
        return 0, len(twin.head)
    for number, tensor in enumerate(twin.tensors):
        start = len(twin.head) + tensor.offset
        if start + (tensor.size_bytes or 0) > size:
            return number, start
    return len(twin.tensors), size


def _write_all(file: int, data: bytes, at: int) -> None:
    view = memoryview(data)
    while view:
        written = os.pwrite(file, view, at)
        view, at = view[written:], at + written


def main(arguments: Sequence[str]) -> int:
    """`python -m jobs.twin_file MODEL --out FILE`, for a machine that has nothing else of ours."""
    words = argparse.ArgumentParser(prog="twin")
    words.add_argument("model", type=Path, help="a GGUF file, or the header cut from one")
    words.add_argument("--out", type=Path, required=True)
    options = words.parse_args(arguments)
    try:
        header, fetch = read_local(options.model)
        twin = plan(header, fetch, of=options.model.name)
        began = time.monotonic()
        write(twin, options.out)
    except ScoutError as fault:
        sys.stderr.write(f"{printable(fault.message)}; {printable(fault.advice)}\n")
        return fault.exit_code
    seconds = time.monotonic() - began
    sys.stdout.write(f"{options.out}: {twin.size_bytes:,} bytes in {seconds:.1f} s\n")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
