"""Memory that llama.cpp's log lines admit, of the target and of the drafter; absent: not said."""

from __future__ import annotations

import re

from jobs.model import BootMemory, MemoryLines

MIB = 2**20
SCANNED_CHARACTERS = 4_000_000
LONGEST_LINE = 1_000

_SIZE = r"(\d{1,9}(?:\.\d{1,4})?) MiB"
_HOST = re.compile(r"(?:CPU|Host)", re.ASCII)
_BUFFER = re.compile(r"(\S{1,40}) (model|compute) buffer size = +" + _SIZE, re.ASCII)
_CACHE = re.compile(r"llama_kv_cache[\w ]{0,40}: +size = +" + _SIZE, re.ASCII)
_RECURRENT = re.compile(r"llama_memory_recurrent: +size = +" + _SIZE, re.ASCII)
_DRAFTER = re.compile(r"loading draft model '")
_PROJECTOR = re.compile(r"\balloc_compute_meta\b|\bclip_")


def read_memory(text: str) -> BootMemory:
    """Memory lines of one boot; a buffer that is laid out again counts once, as it was last."""
    head = text[:SCANNED_CHARACTERS]
    lines = [line[:LONGEST_LINE] for line in head.splitlines()]
    clip = [line for line in lines if _PROJECTOR.search(line)]
    rest = [line for line in lines if not _PROJECTOR.search(line)]
    start = next((i for i, line in enumerate(rest) if _DRAFTER.search(line)), None)
    projector = _lines(clip).compute
    if start is None:
        return BootMemory(_lines(rest), None, projector)
    return BootMemory(_lines(rest[:start]), _lines(rest[start:]), projector)


def _lines(lines: list[str]) -> MemoryLines:
    buffers: dict[tuple[str, str], int] = {}
    caches: list[int] = []
    recurrent: int | None = None
    for line in lines:
        if found := _BUFFER.search(line):
            buffers[found[2], found[1]] = _bytes(found[3])
        elif found := _CACHE.search(line):
            caches.append(_bytes(found[1]))
        elif found := _RECURRENT.search(line):
            recurrent = _bytes(found[1])
    return MemoryLines(
        weights=_sum(buffers, "model", host=False),
        cache=sum(caches) if caches else None,
        recurrent=recurrent,
        compute=_sum(buffers, "compute", host=False),
        pinned=_sum(buffers, "compute", host=True),
    )


def _sum(buffers: dict[tuple[str, str], int], kind: str, *, host: bool) -> int | None:
    sizes = [
        size
        for (what, place), size in buffers.items()
        if what == kind and bool(_HOST.search(place)) is host
    ]
    return sum(sizes) if sizes else None


def _bytes(text: str) -> int:
    return round(float(text) * MIB)
