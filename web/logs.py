"""Pieces of a job's log file, bounded and cut at line ends; never a path that came from outside."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from web.pages import LogTail

TAIL_BYTES = 64 * 1024
PIECE_BYTES = 256 * 1024


@dataclass(frozen=True)
class Piece:
    """Whole lines from `offset` on; `next_offset` is where the following piece begins."""

    text: str
    next_offset: int
    size: int


def tail(path: Path) -> LogTail | None:
    """The end of a log, or None where there is none."""
    try:
        with path.open("rb") as file:
            size = file.seek(0, 2)
            file.seek(max(0, size - TAIL_BYTES))
            data = file.read(TAIL_BYTES)
    except OSError:
        return None
    cut = size > TAIL_BYTES
    if cut:
        data = data.partition(b"\n")[2] or data
    return LogTail(data.decode(errors="replace"), cut=cut)


def piece(path: Path, *, offset: int, ended: bool) -> Piece | None:
    """Lines from `offset` on; until the log has `ended`, a line still being written waits."""
    try:
        with path.open("rb") as file:
            size = file.seek(0, 2)
            file.seek(min(offset, size))
            start = file.tell()
            data = file.read(PIECE_BYTES)
    except OSError:
        return None
    end = data.rfind(b"\n") + 1
    full = len(data) == PIECE_BYTES
    if (full and not end) or (ended and not full):
        end = len(data)
    return Piece(data[:end].decode(errors="replace"), next_offset=start + end, size=size)
