"""Damages sound GGUF headers in every way we know, and counts how the reader takes it."""

from __future__ import annotations

import random
import struct
import time
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field

from support import gguf_files as files

from jobs.errors import BadGguf
from jobs.gguf.reader import Depth, read_header
from jobs.gguf.reading import facts_of

LENGTHS = (0, 1, 8, 255, 2**16, 2**20 + 1, 2**31, 2**32 - 1, 2**40, 2**63, 2**64 - 1)

Damage = Callable[[bytearray, random.Random], None]


def _flip(raw: bytearray, dice: random.Random) -> None:
    raw[dice.randrange(len(raw))] ^= 1 << dice.randrange(8)


def _overwrite(raw: bytearray, dice: random.Random) -> None:
    at = dice.randrange(len(raw))
    length = min(dice.randint(1, 4), len(raw) - at)
    raw[at : at + length] = dice.randbytes(length)


def _swell(raw: bytearray, dice: random.Random) -> None:
    at = dice.randrange(max(len(raw) - 8, 1))
    raw[at : at + 8] = struct.pack("<Q", dice.choice(LENGTHS))


def _cut(raw: bytearray, dice: random.Random) -> None:
    del raw[dice.randrange(len(raw)) :]


def _drop(raw: bytearray, dice: random.Random) -> None:
    at = dice.randrange(len(raw))
    del raw[at : at + dice.randint(1, 64)]


def _double(raw: bytearray, dice: random.Random) -> None:
    at = dice.randrange(len(raw))
    raw[at:at] = raw[at : at + dice.randint(1, 200)]


def _retype(raw: bytearray, dice: random.Random) -> None:
    at = dice.randrange(max(len(raw) - 4, 1))
    raw[at : at + 4] = struct.pack("<I", dice.randrange(16))


def _count(raw: bytearray, dice: random.Random) -> None:
    at = dice.choice((4, 8, 16))
    raw[at : at + 8] = struct.pack("<Q", dice.choice((*LENGTHS, 3, 20, 40)))


DAMAGES: tuple[Damage, ...] = (*(_flip, _overwrite, _swell, _cut, _drop, _double, _retype, _count),)


@dataclass(frozen=True)
class Mutant:
    """A damaged header and the size its file claims, if it claims one."""

    raw: bytes
    size_bytes: int | None
    depth: Depth


def mutants(count: int, dice: random.Random) -> Iterator[Mutant]:
    """So many damaged headers, the same ones for the same dice."""
    sound = [
        files.qwen36(heads=1, vocabulary=40, merges=70, late=False),
        *(files.small(), files.small(), files.small()),
        *(files.dflash(), files.dflash("dflash"), files.projector()),
    ]
    for _ in range(count):
        file = dice.choice(sound)
        raw = bytearray(file.header)
        for _ in range(dice.choice((1, 1, 1, 2, 4))):
            if len(raw) > 1:
                dice.choice(DAMAGES)(raw, dice)
        size_bytes = dice.choice((file.size_bytes, file.size_bytes, len(raw), None))
        yield Mutant(bytes(raw), size_bytes, dice.choice(list(Depth)))


@dataclass
class Tally:
    """How the reader took what it was given."""

    read: int = 0
    refused: int = 0
    slowest_seconds: float = 0.0
    reasons: Counter[str] = field(default_factory=Counter)

    def judge(self, mutant: Mutant) -> None:
        """Read it and its facts; anything but a header or our own error is not caught."""

        def fetch(offset: int, length: int) -> bytes:
            piece = mutant.raw[offset : offset + length]
            if mutant.size_bytes is None:
                return piece
            return piece + bytes(max(min(length, mutant.size_bytes - offset) - len(piece), 0))

        begun = time.process_time()
        try:
            header = read_header(fetch, size_bytes=mutant.size_bytes, depth=mutant.depth)
            facts_of(header, file_name="model-Q4_K_M-00001-of-00002.gguf")
            self.read += 1
        except BadGguf as refused:
            self.refused += 1
            words = [word for word in refused.detail.split() if word.isalpha()]
            self.reasons[" ".join(words[-4:])] += 1
        self.slowest_seconds = max(self.slowest_seconds, time.process_time() - begun)
