"""Which CUDA architectures a file holds code for, and whether a card can run it; runs nothing.

The layout of fat binaries is not documented by NVIDIA; it is that which `cuobjdump` lists: a header
of 16 bytes with a magic number, then one entry for each machine code or PTX with its own header.
What does not look like one is passed over.
"""

from __future__ import annotations

import struct
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Protocol

MAGIC = struct.pack("<I", 0xBA55ED50)
HEADER = struct.Struct("<IHHQ")
"""Magic, version, size of this header, size of all entries."""

ENTRY = struct.Struct("<HHIQIIHHI")
"""Kind, unknown, sizes of header and code, compressed size, unknown, minor, major, architecture."""

PTX, MACHINE_CODE = 1, 2
LEAST_ENTRY_BYTES, MOST_ENTRY_BYTES = 64, 4096
MOST_BINARIES = 100_000
LARGEST_ARCH = 999


class Bytes(Protocol):
    """`bytes` or an `mmap`."""

    def find(self, sub: bytes, start: int, /) -> int: ...

    def __len__(self) -> int: ...

    def __getitem__(self, place: slice, /) -> bytes: ...


@dataclass(frozen=True)
class CudaArchs:
    """Architectures as `nvcc` counts them: 90 is compute capability 9.0, 120 is 12.0.

    `machine` are those of finished machine code, `ptx` those of code that a driver compiles.
    """

    machine: frozenset[int] = frozenset()
    ptx: frozenset[int] = frozenset()

    def __bool__(self) -> bool:
        """Whether there is code for any card."""
        return bool(self.machine or self.ptx)

    def __or__(self, other: CudaArchs) -> CudaArchs:
        """What two files hold together."""
        return CudaArchs(self.machine | other.machine, self.ptx | other.ptx)

    def __str__(self) -> str:
        """As people call them: `sm_90, compute_90`."""
        words = [f"sm_{arch}" for arch in sorted(self.machine)]
        return ", ".join([*words, *(f"compute_{arch}" for arch in sorted(self.ptx))]) or "none"

    def runs_on(self, major: int, minor: int) -> bool:
        """Whether a card of this compute capability can run any of it.

        Machine code runs within its major version on the same or a newer minor one, PTX on the
        same or anything newer (CUDA C++ Programming Guide, binary and PTX compatibility).
        """
        card = 10 * major + minor
        same = any(arch // 10 == major and arch <= card for arch in self.machine)
        return same or any(arch <= card for arch in self.ptx)


def archs_in(content: Bytes) -> CudaArchs:
    """What every fat binary of a file holds; nothing where it has none."""
    found: dict[int, set[int]] = {PTX: set(), MACHINE_CODE: set()}
    at, end = -1, len(content)
    for _ in range(MOST_BINARIES):
        at = content.find(MAGIC, at + 1)
        if at < 0 or at + HEADER.size > end:
            break
        _, version, header_bytes, size = HEADER.unpack(content[at : at + HEADER.size])
        if version == 1 and header_bytes == HEADER.size and size <= end - at - header_bytes:
            first = at + header_bytes
            for kind, arch in _entries(content, first, first + size):
                if kind in found and 0 < arch <= LARGEST_ARCH:
                    found[kind].add(arch)
    return CudaArchs(frozenset(found[MACHINE_CODE]), frozenset(found[PTX]))


def _entries(content: Bytes, at: int, end: int) -> Iterable[tuple[int, int]]:
    while at + LEAST_ENTRY_BYTES <= end:
        words = ENTRY.unpack(content[at : at + ENTRY.size])
        kind, _, header_bytes, size, *_, arch = words
        if not LEAST_ENTRY_BYTES <= header_bytes <= MOST_ENTRY_BYTES:
            return
        yield kind, arch
        at += header_bytes + size
