"""What a running step added to its folders; it counts, it neither writes nor follows links."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

DEEPEST = 64


@dataclass(frozen=True)
class _Room:
    """What is free on the disk of one folder."""

    free_bytes: int
    free_entries: int

    @classmethod
    def of(cls, folder: Path) -> _Room:
        found = os.statvfs(folder)
        return cls(found.f_bavail * found.f_frsize, found.f_favail)


class DiskUse:
    """Counts cheaply: it walks the folders only when their disk lost as much as they may take."""

    def __init__(self, folders: Sequence[Path]) -> None:
        self._folders = [folder for folder in folders if folder.is_dir()]
        self._before = [_Room.of(folder) for folder in self._folders]

    def free_bytes(self) -> int:
        """What is free on the fullest of these disks."""
        rooms = [_Room.of(folder).free_bytes for folder in self._folders]
        return min(rooms, default=2**63)

    def over(self, most_bytes: int, most_entries: int) -> str | None:
        """What is too much, in words; folders deeper than DEEPEST are, for they are not counted."""
        for folder, before in zip(self._folders, self._before, strict=True):
            now = _Room.of(folder)
            lost_bytes = before.free_bytes - now.free_bytes
            lost_entries = before.free_entries - now.free_entries
            if lost_bytes > most_bytes or lost_entries > most_entries:
                held = _measure(folder, most_entries)
                if held.size_bytes > most_bytes:
                    return f"{held.size_bytes / 2**30:.1f} GiB"
                if held.entries > most_entries:
                    return f"more than {most_entries} files"
                if held.too_deep:
                    return f"folders more than {DEEPEST} deep"
        return None


@dataclass
class _Held:
    size_bytes: int = 0
    entries: int = 0
    too_deep: bool = False


def _measure(folder: Path, most_entries: int) -> _Held:
    held = _Held()
    waiting = [(folder, 0)]
    while waiting and held.entries <= most_entries:
        at, depth = waiting.pop()
        with contextlib.suppress(OSError), os.scandir(at) as found:
            for entry in found:
                held.entries += 1
                with contextlib.suppress(OSError):
                    held.size_bytes += entry.stat(follow_symlinks=False).st_blocks * 512
                if entry.is_dir(follow_symlinks=False):
                    held.too_deep |= depth >= DEEPEST
                    if depth < DEEPEST:
                        waiting.append((Path(entry.path), depth + 1))
    return held
